package bayes

import (
	"fmt"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/memory"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Estimates come from the compiled programs that a call will run, which know the sizes of their
// arenas exactly, plus what Go allocates in addition, which is counted by hand at each call of add:
// samples being read, probabilities being averaged. Tests compare the sums with what the kernel
// reports for whole runs.

// Memory is an estimate of the memory that a call takes at its peak, in bytes: of the host, and of
// GPUs if it runs there. Calls refuse to begin, with a MemoryError, if it is more than available.
type Memory struct {
	// Host and Device are the peaks: everything that is kept throughout, and the phase that takes
	// most.
	Host, Device int64
	// Loaded is the part of Host that is allocated already, the data.
	Loaded int64
	// Parts are what takes memory, in the order of time.
	Parts []MemoryPart
	// Available is what the process can still take of the host's memory, and Limit what limits it,
	// such as a cgroup. DeviceAvailable is the free memory of the GPUs. A limit that is unknown is
	// math.MaxInt64.
	Available, DeviceAvailable int64
	Limit                      string
}

// MemoryPart is a part of a Memory.
type MemoryPart struct {
	Name string // such as "chains"
	// Phase is when the memory is in use, such as "after training"; "" is throughout.
	Phase        string
	Host, Device int64
}

// The phases of a run that take memory of their own. Parts during training are in use at the same
// time, parts of the other phases one after the other.
const (
	atStart        = "at the start"
	duringTraining = "during training"
	afterTraining  = "after training"
)

// garbage is how much memory Go's heap takes for each byte in use: the garbage collector begins
// when there is as much garbage again, but most of what is in use at a peak is allocated at once.
const garbage = 1.25

// inHeap returns what the Go heap takes for some bytes in use.
func inHeap(bytes int) int64 { return int64(garbage * float64(bytes)) }

// add adds a part: a session of a program, and some bytes in use on the Go heap.
func (m *Memory) add(name, phase string, session tensor.Footprint, heap int) {
	m.Parts = append(m.Parts, MemoryPart{name, phase, int64(session.Host) + inHeap(heap), int64(session.Device)})
}

// sum computes the peaks from the parts, and looks up what is available.
func (m *Memory) sum(device tensor.Device) error {
	var throughout, training, alone MemoryPart
	for _, p := range m.Parts {
		switch p.Phase {
		case "":
			throughout.Host, throughout.Device = throughout.Host+p.Host, throughout.Device+p.Device
		case duringTraining:
			training.Host, training.Device = training.Host+p.Host, training.Device+p.Device
		default:
			alone.Host, alone.Device = max(alone.Host, p.Host), max(alone.Device, p.Device)
		}
	}
	m.Host, m.Device = throughout.Host+max(training.Host, alone.Host), throughout.Device+max(training.Device, alone.Device)
	return m.lookUp(device)
}

// lookUp sets what is available.
func (m *Memory) lookUp(device tensor.Device) error {
	limit := memory.Available()
	m.Available, m.Limit, m.DeviceAvailable = limit.Bytes, limit.Reason, memory.Unknown
	if s, ok := device.(tensor.Sizer); ok {
		free, err := s.Free()
		if err != nil {
			return err
		}
		m.DeviceAvailable = int64(free)
	}
	return nil
}

// Fits reports whether the memory is available.
func (m *Memory) Fits() bool { return m.Host-m.Loaded <= m.Available && m.Device <= m.DeviceAvailable }

// check returns a MemoryError if a task needs more than is available. advice returns settings with
// which the task needs at most some bytes of the host and of the device.
func (m *Memory) check(task string, advice func(host, device int64) []string) error {
	err := memory.Check(task, m.Host-m.Loaded, func(available int64) []string { return advice(available, m.DeviceAvailable) })
	if err != nil || m.Device <= m.DeviceAvailable {
		return err
	}
	free := memory.Limit{Bytes: m.DeviceAvailable, Reason: "the GPU's memory"}
	return errors.WithStack(&MemoryError{Task: task, Need: m.Device, Limit: free, Advice: advice(m.Available, m.DeviceAvailable)})
}

// String returns a table of the parts and the peak.
func (m *Memory) String() string {
	var text strings.Builder
	onGPU := m.Device > 0
	for _, p := range m.Parts {
		fmt.Fprintf(&text, "  %-26s %10s", p.Name, memory.Size(p.Host))
		if onGPU {
			fmt.Fprintf(&text, " %10s on the GPU", memory.Size(p.Device))
		}
		if p.Phase != "" {
			fmt.Fprintf(&text, "  %s", p.Phase)
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "memory: about %s at most, %s", memory.Size(m.Host), available(m.Available, m.Limit))
	if onGPU {
		fmt.Fprintf(&text, "; of the GPU %s, %s", memory.Size(m.Device), available(m.DeviceAvailable, "free"))
	}
	return text.String()
}

func available(bytes int64, limit string) string {
	if bytes == memory.Unknown {
		return "what is available is unknown"
	}
	return fmt.Sprintf("%s available (%s)", memory.Size(bytes), limit)
}

// datasetBytes returns the bytes of the images, labels and file names of data sets.
func datasetBytes(sets ...*datasets.Dataset) int64 {
	bytes := 0
	const header = 16 // of a string
	for _, d := range sets {
		if d == nil {
			continue
		}
		bytes += len(d.Images) + 4*len(d.Labels)
		for _, name := range d.Files {
			bytes += header + len(name)
		}
	}
	return int64(bytes)
}

// EstimateMemory estimates the memory of the run that Fit would make. Nothing is allocated for it
// except the compiled programs. With the method auto it is that of the method that auto would
// choose, without the pilot; a few steps measure the speed. The errors are those of Fit for an
// invalid specification or data.
func EstimateMemory(spec Spec, data *datasets.Splits, options ...Option) (*Memory, error) {
	if data == nil || data.Train == nil {
		return nil, invalid("estimate: no data to train on")
	}
	e := environmentOf(options)
	spec, err := spec.recommendedFor(data.Train, e).assumed(data.Train, e)
	if err != nil {
		return nil, err
	}
	t, err := newTraining(spec, data.Train, "", e)
	if err != nil {
		return nil, err
	}
	t.splits, t.watching = data, t.heldOut(data)
	if err := t.chooseValidation(data); err != nil {
		return nil, err
	}
	var m *Memory
	err = t.on(func(device tensor.Device) error {
		program, err := t.build(device)
		if err != nil {
			return err
		}
		m, err = t.memory(device, program)
		return err
	})
	return m, err
}

// memory estimates the memory of a training with its compiled program: of all phases if t.splits
// is set, and otherwise of the steps only.
func (t *training) memory(device tensor.Device, program *graph.Program) (*Memory, error) {
	m := &Memory{}
	m.Loaded = t.loaded()
	m.Parts = append(m.Parts, MemoryPart{Name: "data", Host: m.Loaded})
	chains := t.spec.Chains * t.spec.replicasOfEach()
	size, initial, err := program.Size(device, chains)
	if err != nil {
		return nil, err
	}
	const tables = 3 // of rates, temperatures, step sizes
	m.add("network, chains, minibatch", "", size, tables*8*t.plan.Steps)
	m.add("initial values", atStart, tensor.Footprint{}, initial)
	if t.splits == nil {
		return m, m.sum(device)
	}
	if err := t.addWarmStart(m, device); err != nil {
		return nil, err
	}
	weights := parametersOf(program)
	sample := 4 * weights
	_, chain, _ := program.Bytes()
	traces := measure.TracesSize(t.spec.Chains, t.heldOutLen())
	m.add("traces", "", tensor.Footprint{}, traces)
	m.add("checkpoints", duringTraining, tensor.Footprint{}, copiesWritten*(chains*chain+traces/2))
	m.add("samples being written", duringTraining, tensor.Footprint{}, t.writtenBytes(sample))
	if err := m.addFeatures(atStart, device, t.predicted, t.data.Len()+t.heldOutLen()+t.validationLen()); err != nil {
		return nil, err
	}
	if t.watching != nil {
		n := t.heldOutLen()
		held, err := samples.PredictionSize(device, t.predicted.inputs(), n, n, t.predicted.network.Apply)
		if err != nil {
			return nil, err
		}
		m.add("held-out images", "", held.Footprint, len(t.watching.Pixels)+4*n*held.Classes)
	}
	if err := t.addValidation(m, device); err != nil {
		return nil, err
	}
	if t.teaching != nil {
		const perTarget = 2 * 4 // bytes, of the file and its values
		n := t.data.Len()
		m.add("changed images and targets", duringTraining, tensor.Footprint{}, n*(t.data.ImageSize()+perTarget*(t.data.Classes+1)))
	}
	if err := t.addConclusion(m, device, weights); err != nil {
		return nil, err
	}
	if err := t.addDiagnostics(m, device); err != nil {
		return nil, err
	}
	if err := t.addPredictions(m, device); err != nil {
		return nil, err
	}
	return m, m.sum(device)
}

// loaded returns the bytes of the data, and of the copy that a subset of sorted data is.
func (t *training) loaded() int64 {
	if t.splits == nil {
		return datasetBytes(t.data)
	}
	// First returns a copy of the images unless those that it chooses are contiguous.
	bytes := datasetBytes(t.splits.Train, t.splits.Validation, t.splits.Test)
	if &t.splits.Train.Images[0] != &t.data.Images[0] {
		bytes += datasetBytes(t.data)
	}
	return bytes
}

// heldOutLen returns the number of held-out images that chains are watched on.
func (t *training) heldOutLen() int {
	if t.watching == nil {
		return 0
	}
	return t.watching.Len()
}

// parametersOf returns the number of a program's parameters.
func parametersOf(program *graph.Program) (n int) {
	for _, p := range program.Parameters() {
		n += p.Shape.Elements()
	}
	return n
}

// checkWeights returns a MemoryError if there is no memory for the weights of all chains, of which
// a session keeps a copy. It comes before the graph is compiled, since kernels refuse matrices that
// no machine has memory for.
func (t *training) checkWeights(device tensor.Device, b *graph.Builder) error {
	weights := 0
	for _, p := range b.Parameters() {
		weights += graph.ShapeOf(p).Elements()
	}
	m := &Memory{}
	bytes := 2 * t.spec.Chains * weights * t.dtype().Size()
	if _, onHost := device.(*tensor.Host); onHost {
		m.Host = int64(bytes)
	} else {
		m.Device = int64(bytes)
	}
	if err := m.lookUp(device); err != nil {
		return err
	}
	chains := "a chain"
	if t.spec.Chains > 1 {
		chains = fmt.Sprintf("%d chains", t.spec.Chains)
	}
	return t.checkFits(device, m, "pollen: fit: keeping the weights of "+chains)
}

// fitting builds the program of a training. It returns a MemoryError if there is no memory for its
// steps.
func (t *training) fitting(device tensor.Device) (*graph.Program, error) {
	program, err := t.build(device)
	if err != nil {
		return nil, err
	}
	m, err := t.memory(device, program)
	if err != nil {
		return nil, err
	}
	return program, t.checkFits(device, m, "pollen: fit")
}

// checkFits returns a MemoryError if a task of the run needs more than is available.
func (t *training) checkFits(device tensor.Device, m *Memory, task string) error {
	return m.check(task, func(onHost, onDevice int64) []string {
		if t.trial {
			return nil
		}
		return t.advice(device, onHost, onDevice)
	})
}

// checkTables returns a MemoryError if there is no memory for the tables of a run's rates,
// temperatures and step sizes, which are made before its other memory is estimated.
func checkTables(steps int) error {
	const many, tables = 1 << 20, 4
	if steps < many {
		return nil
	}
	return memory.Check(fmt.Sprintf("pollen: fit: making tables of %d steps", steps), 8*tables*int64(steps), func(int64) []string {
		return []string{"fewer epochs", "a larger batch"}
	})
}

// addConclusion adds what approximations take after the last step.
func (t *training) addConclusion(m *Memory, device tensor.Device, weights int) error {
	const file = 8 // bytes per weight of a sample that is read: its file and its values
	switch method := t.kind.(type) {
	case SWAG:
		each := approximate.SWAGBytes(method.Rank, weights)
		// Half as much again for the states that were read and are not yet collected as garbage.
		m.add("moments of states", afterTraining, tensor.Footprint{}, t.spec.Chains*each*3/2+file*weights)
	case LaplaceApproximation:
		last, ok := t.trained[len(t.trained)-1].(layers.Linear)
		if !ok {
			return nil // which is refused elsewhere
		}
		program, inputs, err := t.lastProgram()
		if err != nil {
			return err
		}
		size, initial, err := program.Size(device, 1)
		if err != nil {
			return err
		}
		each := approximate.LaplaceBytes(inputs, last.Outputs, t.spec.Batch)
		m.add("curvature of the last layer", afterTraining, size, initial+t.spec.Chains*(each+4*weights)+t.writtenBytes(4*weights))
	}
	return nil
}

// addDiagnostics adds what the measurements at the end take.
func (t *training) addDiagnostics(m *Memory, device tensor.Device) error {
	traits := t.kind.traits()
	if !traits.tempered || t.spec.temperature() == 0 {
		return nil
	}
	subject := measure.Subject{
		Network: t.trained, Posterior: t.posterior(), Temperature: t.spec.temperature(), Images: t.inputs, Labels: t.data.Labels,
		Classes: t.data.Classes, Batch: t.spec.Batch, Augment: t.spec.Augment.apply,
		ClassWeights: t.classWeights,
	}
	if _, ok := t.kind.(minibatchKind); ok && t.spec.Anchor == 0 {
		b, err := measure.NoiseSize(device, subject)
		if err != nil {
			return err
		}
		m.add("noise of gradients", afterTraining, b.Session, b.Heap)
	}
	if traits.collected || traits.drawn || !t.spec.Augment.isNone() || t.classWeights != nil ||
		measure.PredictionSamples(t.spec.Samples*t.spec.Chains, t.passes(t.plan.Steps)) == 0 {
		return nil
	}
	b, err := measure.PredictionSize(device, subject)
	if err != nil {
		return err
	}
	m.add("temperature of predictions", afterTraining, b.Session, b.Heap)
	return nil
}

// addPredictions adds what predictions for the calibration and the scores take, whichever is more.
func (t *training) addPredictions(m *Memory, device tensor.Device) error {
	n := 0
	for _, d := range []*datasets.Dataset{t.splits.Validation, t.splits.Test} {
		if d != nil {
			n = max(n, d.Len())
		}
	}
	if n == 0 {
		return nil
	}
	return m.addPredictions(afterTraining, device, t.predicted, n, t.spec.Samples*max(1, t.spec.Chains), true)
}

// advice returns settings with which the run would need at most some bytes of the host, in addition
// to its data, and of the device: fewer chains, a smaller batch, fewer examples, each on its own.
func (t *training) advice(device tensor.Device, onHost, onDevice int64) (advice []string) {
	fits := func(s Spec) bool {
		u, err := newTraining(s, t.data, "", t.environment)
		if err != nil {
			return false
		}
		u.splits, u.watching, u.trial = t.splits, t.watching, true
		u.validation, u.labels = t.validation, t.labels
		program, err := u.build(device)
		if err != nil {
			return false
		}
		m, err := u.memory(device, program)
		return err == nil && m.Host-t.loaded() <= onHost && m.Device <= onDevice
	}
	for _, setting := range []struct {
		name  string
		value int
		set   func(s *Spec, value int)
	}{
		{"chains", t.spec.Chains, func(s *Spec, n int) { s.Chains = n }},
		{"batch", t.spec.Batch, func(s *Spec, n int) { s.Batch = n }},
		{"subset", t.data.Len(), func(s *Spec, n int) { s.Subset = n; s.Batch = min(s.Batch, n) }},
	} {
		if t.kind.traits().exact && setting.name == "batch" {
			continue
		}
		// The first half, quarter, ... of the setting that fits.
		for n := setting.value / 2; n >= 1; n /= 2 {
			s := t.spec
			if setting.set(&s, n); fits(s) {
				advice = append(advice, fmt.Sprintf("%s %d", setting.name, n))
				break
			}
		}
	}
	if len(advice) == 0 {
		advice = []string{"a smaller model"}
	}
	return advice
}
