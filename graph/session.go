package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// LoadOptions selects the chains of a run that a session runs.
type LoadOptions struct {
	// Seed is the seed of the run, on which all random numbers depend.
	Seed uint64
	// FirstChain is the number, in the run, of the session's first chain. Random numbers depend on
	// the number in the run, so that a chain is the same in every division of the run.
	FirstChain int
	// Chains is the number of chains; 0 means 1.
	Chains int
}

// Session is a program in a device's memory, with the state of its chains. Chain 0 of a session is
// chain FirstChain of the run: sessions with different FirstChain divide a run among processes,
// with the same bits as one session with all chains. A session must not be used concurrently.
type Session struct {
	program     *Program
	runner      tensor.Runner
	options     LoadOptions // with at least one chain
	step        uint64
	shifts      []uint64       // how far each chain's step is ahead of step, modulo 2^64, see SetStep
	evaluations uint64         // how often Evaluate was called
	chainArena  *tensor.Buffer // a chain's arena, as bytes
	rings       [][]float64    // of each chain, as read after the last Run
	raw         []byte         // a ring as the device stores it
}

// NotFinite is the error of Session.Run when a metric becomes NaN or infinite. It names the first
// launch, in the first such step and chain, that computed such a number. The session is in its
// state before that Run.
type NotFinite struct {
	// Step and Chain are numbers in the run.
	Step  uint64
	Chain int
	// Kernel and Label are the launch's, such as "conv2d_fwd_f32" and "conv1: conv2d".
	Kernel string
	Label  string
	// Buffer is the name of the buffer that the launch wrote.
	Buffer string
}

// Error implements error.
func (e *NotFinite) Error() string {
	launch := fmt.Sprintf("%s (%s)", e.Label, e.Kernel)
	if e.Label == e.Buffer {
		launch = e.Kernel
	}
	return fmt.Sprintf("graph: step %d, chain %d: %s computed a NaN or an infinity in %s", e.Step, e.Chain, launch, e.Buffer)
}

// Load allocates memory for the program on a device and initialises all chains at step 0. The
// caller must Close the session before the device.
func (p *Program) Load(device tensor.Device, o LoadOptions) (*Session, error) {
	if device == nil {
		return nil, errors.New("graph: load: the device must not be nil")
	}
	o.Chains = cmp.Or(o.Chains, 1)
	if o.Chains < 0 || o.FirstChain < 0 {
		return nil, errors.Errorf("graph: load: Chains and FirstChain must be at least 0, got %d and %d", o.Chains, o.FirstChain)
	}
	if o.FirstChain > math.MaxUint16 || o.Chains > math.MaxUint16-o.FirstChain {
		return nil, errors.Errorf("graph: load: chains must be numbered below %d, got %d chains from number %d", math.MaxUint16, o.Chains, o.FirstChain)
	}
	runner, err := device.Load(p.workload(o.Chains))
	if err != nil {
		return nil, errors.Wrap(err, "graph: load")
	}
	s := &Session{program: p, runner: runner, options: o, shifts: make([]uint64, o.Chains)}
	s.chainArena = tensor.NewBuffer("chain", tensor.Chain, tensor.Uint8, p.bytes[tensor.Chain])
	s.chainArena.Offset = 0
	work := make([]float64, p.initialValues())
	for chain := range o.Chains {
		if err := s.initialize(chain, work, p.inputs); err != nil {
			runner.Close()
			return nil, err
		}
		if p.ring != nil {
			s.rings = append(s.rings, make([]float64, p.ring.Elements))
		}
	}
	if p.ring != nil {
		s.raw = make([]byte, p.ring.Bytes())
	}
	return s, nil
}

// OnHost compiles the graph, loads it on all threads of the CPU, calls use with the session and
// frees everything: for programs that need a session only once. It returns the first error.
func (b *Builder) OnHost(o LoadOptions, use func(s *Session) error) (err error) {
	program, err := b.Compile()
	if err != nil {
		return err
	}
	if use == nil {
		return errors.New("graph: on host: use must not be nil")
	}
	host := tensor.NewHost(0)
	defer host.Close()
	s, err := program.Load(host, o)
	if err != nil {
		return err
	}
	defer s.Close()
	return use(s)
}

// initialize writes a chain's header, with the chain's step, and the initial values of inputs.
// Shared inputs are written again for each chain, with the same values. work has room for the
// values of one input.
func (s *Session) initialize(chain int, work []float64, inputs []*programInput) error {
	o := s.options
	if s.program.header != nil {
		words := []uint64{HeaderSeed: o.Seed, HeaderChain: uint64(o.FirstChain + chain), HeaderStep: s.step + s.shifts[chain]}
		if err := s.runner.Write(s.program.header, chain, 0, tensor.Bytes(words)); err != nil {
			return errors.Wrap(err, "graph: load")
		}
	}
	for _, in := range inputs {
		values := in.values
		if in.initialize != nil {
			values = work[:in.Shape.Elements()]
			clear(values)
			in.initialize(o.Seed, uint32(o.FirstChain+chain), in.stream, in.Shape, values)
		}
		for first := 0; first < len(values); first += writtenTogether {
			part := values[first:min(first+writtenTogether, len(values))]
			if err := s.runner.Write(in.buffer, chain, first, floatBytes(in.DType, part)); err != nil {
				return errors.Wrapf(err, "graph: load: %s", in.Name)
			}
		}
	}
	return nil
}

// writtenTogether is the number of initial values that are converted and written at once.
const writtenTogether = 1 << 16

// initialValues returns the largest number of values that an Initializer fills.
func (p *Program) initialValues() (most int) {
	for _, in := range p.inputs {
		if in.initialize != nil {
			most = max(most, in.Shape.Elements())
		}
	}
	return most
}

func floatBytes(dtype tensor.DType, values []float64) []byte {
	if dtype == tensor.Float32 {
		return tensor.Bytes(tensor.Convert[float32](values))
	}
	return tensor.Bytes(values)
}

// Program returns the session's program.
func (s *Session) Program() *Program { return s.program }

// Chains returns the number of chains.
func (s *Session) Chains() int { return s.options.Chains }

// Header returns the words of a chain's header: seed, chain and step.
func (s *Session) Header(chain int) (words [3]uint64, err error) {
	return words, Read(s, headerName, chain, 0, words[:])
}

// SetStep sets the number of a chain's next step. Programs without updates use it to choose a
// minibatch, which depends on the step. The number of steps that the session has made, see Steps,
// does not change.
func (s *Session) SetStep(chain int, step uint64) error {
	if err := Write(s, headerName, chain, HeaderStep, []uint64{step}); err != nil {
		return err
	}
	s.shifts[chain] = step - s.step
	return nil
}

// Restart gives a chain the parameters and states of step 0. The number of its next step does not
// change, so that all chains of the session remain at the same step. After a chain has diverged, a
// caller restarts it and then writes the weights or states with which it should continue.
func (s *Session) Restart(chain int) error {
	var own []*programInput
	for _, in := range s.program.inputs {
		if in.buffer.Arena != tensor.Chain {
			continue
		}
		own = append(own, in)
		if in.initialize == nil { // a device's memory is zero at first, but no longer
			if err := s.runner.Write(in.buffer, chain, 0, make([]byte, in.buffer.Bytes())); err != nil {
				return errors.Wrapf(err, "graph: restart: %s", in.Name)
			}
		}
	}
	return s.initialize(chain, make([]float64, s.program.initialValues()), own)
}

// Steps returns the number of steps that the chains have made, or that Restore set.
func (s *Session) Steps() uint64 { return s.step }

// Run makes the given number of steps with all chains, at most MetricRows if the program has
// metrics. If a metric becomes NaN or infinite, the error is a *NotFinite, and parameters and state
// are again what they were before this Run.
func (s *Session) Run(steps int) error { return s.RunPaced(steps, nil) }

// Pace divides the steps of Session.RunPaced into parts. It is called before each part, with the
// numbers of steps made so far and left, and returns the number of steps of the next part: numbers
// outside 1 to left stand for the nearest of these. It is called once more at the end, when left is
// 0 and its results are ignored.
type Pace func(made, left int) (next int, err error)

// RunPaced is Run in parts, between which the caller can report progress or stop; the results have
// the same bits however the steps are divided. If pace returns an error, RunPaced returns it, and
// parameters and state are again what they were before. The steps of a program without metrics
// cannot be taken back: those made then count.
func (s *Session) RunPaced(steps int, pace Pace) error {
	if steps < 0 {
		return errors.Errorf("graph: run: steps must be at least 0, got %d", steps)
	}
	// Without metrics there is nothing to check, and no limit to the number of steps.
	if s.rings == nil {
		made, err := s.runParts(steps, pace)
		s.step += uint64(made)
		return err
	}
	if steps > MetricRows {
		return errors.Errorf("graph: run: steps must be at most %d in a program with metrics, got %d: a session keeps the metrics of the last %[1]d steps, "+
			"so call Run several times", MetricRows, steps)
	}
	// The device keeps a copy of the chains' state; locate returns to it if a metric is not finite.
	if err := s.runner.Keep(); err != nil {
		return errors.Wrap(err, "graph: run")
	}
	if made, err := s.runParts(steps, pace); err != nil {
		if made > 0 {
			return cmp.Or(s.restoreAll(), err)
		}
		return err
	}
	s.step += uint64(steps)
	bad, at := -1, uint64(0)
	for chain := range s.options.Chains {
		if err := s.readRing(chain); err != nil {
			return err
		}
		if step, ok := s.firstBadStep(chain, steps); ok && (bad < 0 || step < at) {
			bad, at = chain, step
		}
	}
	if bad >= 0 {
		return s.locate(bad, steps, at)
	}
	return nil
}

// runParts runs steps on the device, in the parts that pace asks for. It returns the number of
// steps made if pace returns an error, and 0 after an error of the device.
func (s *Session) runParts(steps int, pace Pace) (made int, err error) {
	if pace == nil {
		pace = func(_, left int) (int, error) { return left, nil }
	}
	for made < steps {
		next, err := pace(made, steps-made)
		if err != nil {
			return made, err
		}
		next = min(max(1, next), steps-made)
		if err := s.runner.Run(next); err != nil {
			return 0, err
		}
		made += next
	}
	_, _ = pace(made, 0)
	return made, nil
}

// Evaluate computes the outputs of all chains without counting a step. Metrics are discarded and
// may be infinite. It returns an error if the program has updates. The program itself increments
// the step counter, so Evaluate sets it back afterwards: the next call draws the same random
// numbers, and Run new ones.
func (s *Session) Evaluate() error {
	if s.program.updates {
		return errors.New("graph: evaluate: the program has updates, which only Run may make")
	}
	if err := s.runner.Run(1); err != nil {
		return err
	}
	s.evaluations++
	if s.program.header == nil {
		return nil
	}
	for chain := range s.options.Chains {
		if err := s.SetStep(chain, s.step+s.shifts[chain]); err != nil {
			return err
		}
	}
	return nil
}

// Evaluations returns the number of calls of Evaluate that computed the outputs.
func (s *Session) Evaluations() uint64 { return s.evaluations }

// readRing copies a chain's ring of metrics from the device, converted to float64.
func (s *Session) readRing(chain int) error {
	ring := s.rings[chain]
	if err := s.runner.Read(s.program.ring, chain, 0, s.raw); err != nil {
		return errors.Wrap(err, "graph: metrics")
	}
	if s.program.dtype == tensor.Float32 {
		for i, v := range view[float32](s.raw) {
			ring[i] = float64(v)
		}
		return nil
	}
	copy(ring, view[float64](s.raw))
	return nil
}

// firstBadStep returns the first of a chain's last steps whose metrics are not all finite, as a
// number of the session. The argument steps is the number of steps to search.
func (s *Session) firstBadStep(chain, steps int) (uint64, bool) {
	columns := len(s.program.metrics)
	for step := s.step - uint64(steps); step < s.step; step++ {
		row := int((step+s.shifts[chain])%MetricRows) * columns
		for _, v := range s.rings[chain][row : row+columns] {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return step, true
			}
		}
	}
	return 0, false
}

// locate restores the state before the Run and repeats its steps, launch by launch, until one
// computes a number that is not finite. The numbers are the same as before, because random numbers
// depend only on seed, chain, step and stream.
func (s *Session) locate(chain, steps int, bad uint64) error {
	if err := s.restoreAll(); err != nil {
		return err
	}
	first := s.step - uint64(steps)
	s.step = first
	fault := &NotFinite{Step: bad + s.shifts[chain], Chain: s.options.FirstChain + chain, Label: "unknown", Kernel: "unknown", Buffer: "a metric"}
	for step := first; step <= bad; step++ {
		found, err := s.stepUntilNotFinite(chain, fault)
		if err != nil {
			return err
		}
		if found {
			fault.Step = step + s.shifts[chain]
			break
		}
	}
	if err := s.restoreAll(); err != nil {
		return err
	}
	return fault
}

func (s *Session) restoreAll() error {
	return errors.Wrap(s.runner.Return(), "graph: back to the last good step")
}

// stepUntilNotFinite makes one step and stops at the first launch that writes a number which is not
// finite.
func (s *Session) stepUntilNotFinite(chain int, fault *NotFinite) (found bool, err error) {
	stop := errors.New("found")
	err = s.runner.Step(chain, func(i int) error {
		launch := &s.program.launches[i]
		for _, argument := range launch.Arguments {
			b := argument.Buffer
			if b == nil || argument.Access&tensor.Write == 0 || !b.DType.IsFloat() {
				continue
			}
			raw := make([]byte, b.Bytes())
			if err := s.runner.Read(b, chain, 0, raw); err != nil {
				return err
			}
			if !finite(b.DType, raw) {
				fault.Kernel, fault.Label, fault.Buffer = launch.Kernel, launch.Label, b.Name
				return stop
			}
		}
		return nil
	})
	if err == stop {
		return true, nil
	}
	return false, err
}

// finite reports whether all numbers are finite.
func finite(dtype tensor.DType, raw []byte) bool {
	if dtype == tensor.Float64 {
		return !slices.ContainsFunc(view[float64](raw), func(v float64) bool { return v-v != 0 }) // NaN for an infinity and for NaN
	}
	return !slices.ContainsFunc(view[float32](raw), func(v float32) bool { return v-v != 0 })
}

// Metric returns the value of a chain's metric at a step of the last Run. Steps are numbered from
// 0 in the run. Earlier steps may have been overwritten in the ring. Metric returns NaN if there is
// no such metric, no such chain, or if the step has not been made.
func (s *Session) Metric(chain int, name string, step uint64) float64 {
	column, ok := s.program.columns[name]
	if !ok || chain < 0 || chain >= s.options.Chains || step >= s.step+s.shifts[chain] {
		return math.NaN()
	}
	return s.rings[chain][int(step%MetricRows)*len(s.program.metrics)+column]
}

// Close frees the session's memory on the device.
func (s *Session) Close() error { return s.runner.Close() }
