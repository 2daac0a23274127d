package langevin

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// KineticPrefix begins the names of the metrics that samplers with momentum record: d times the
// kinetic temperature of a parameter of d elements at the beginning of the step.
const KineticPrefix = "kinetic "

// momentumRule is a Sampler with velocities. v is the distance that theta moves in a step. In
// equilibrium v has the variance h T: in the notation of physics, with a mass of 1 and the time
// step e, h is e^2 and v is e times the momentum. Velocities are drawn from N(0, h T) at step 0.
// They are not rescaled when h changes between steps, and adapt to a new h within 1/friction steps.
type momentumRule interface {
	Sampler
	// states returns the states besides v of a parameter of n elements.
	states(n int) []momentumState
	// lower returns the kernel of the update: what follows "<name>_update" in its symbol, its host
	// side, and the rule's attributes in the order in which kernels take them.
	lower(l *graph.Lowering, u momentumUpdate) (suffix string, host tensor.HostKernel, scalars []float64)
}

// momentumState is a state of a momentumRule. It has one axis.
type momentumState struct {
	suffix string // its name after the parameter's
	size   int
	start  graph.Initializer // nil for 0
}

// severalCalls is a momentumRule whose update takes several kernels on a GPU. calls receives the
// call that a single kernel would get and returns the calls to make instead. Its arguments are the
// buffers in the order of the constants below, n, the lengths of the tables of rates and
// temperatures, the two streams, the rule's attributes, and at the end the prior with the size of
// the data set.
type severalCalls interface {
	calls(l *graph.Lowering, update tensor.Call) []tensor.Call
}

// kickFirst is a momentumRule that begins a step with the whole kick v - h gU. Its kinetic
// temperature is the mean of the temperatures before and after the kick. In a steady state
// minibatches heat the velocities in the kick and friction cools them afterwards; the mean of both
// is T where U is flat.
type kickFirst interface{ kickFirst() bool }

// attachMomentum implements Update for all samplers with momentum. The recorded kinetic temperature
// of an element is mass v^2/h, unless the rule is a kickFirst.
func attachMomentum(b *graph.Builder, r momentumRule, in UpdateInputs, parameter, gradient *graph.Node, mass float64) *graph.Node {
	return attachVelocities(b, r, in, parameter, gradient, b.State(in.Name+velocitySuffix, nil, graph.ShapeOf(parameter)...), mass)
}

// velocitySuffix ends the names of the states that hold velocities.
const velocitySuffix = ".momentum"

// attachVelocities is attachMomentum with velocities v that the caller has created. more holds
// further inputs of the update, each with one axis.
func attachVelocities(b *graph.Builder, r momentumRule, in UpdateInputs, parameter, gradient, v *graph.Node, mass float64, more ...*graph.Node) *graph.Node {
	shape := graph.ShapeOf(parameter)
	states := r.states(shape.Elements())
	u := momentumUpdate{rule: r, states: len(states), more: len(more), dataSize: in.DataSize, prior: in.Prior, noise: b.Stream(), start: b.Stream()}
	// The kinetic temperature is a separate op, which reads v before the update overwrites it.
	if k, ok := r.(kickFirst); ok && k.kickFirst() {
		b.Record(KineticPrefix+in.Name, b.Apply(kickedKinetic{Prior: in.Prior, DataSize: in.DataSize}, v, parameter, gradient, in.Rates, b.Header()))
	} else {
		b.Record(KineticPrefix+in.Name, b.Apply(kinetic{Mass: mass, DataSize: in.DataSize}, v, in.Rates, b.Header()))
	}
	inputs := []*graph.Node{parameter, gradient, v, in.Rates, in.Temperatures}
	for _, m := range states {
		inputs = append(inputs, b.State(in.Name+m.suffix, m.start, m.size))
	}
	inputs = append(inputs, more...)
	return b.Apply(u, append(inputs, b.Header())...)
}

// checkFriction checks the friction of a step for samplers that take any positive value.
func checkFriction(name string, friction float64) error {
	if !positive(friction) {
		return errors.Errorf("langevin: %s: Friction must be positive, got %v", name, friction)
	}
	return nil
}

// checkBoundedFriction checks the friction of a step for samplers that take at most 1.
func checkBoundedFriction(name string, friction float64) error {
	if !(friction > 0 && friction <= 1) {
		return errors.Errorf("langevin: %s: Friction must be above 0 and at most 1, got %v", name, friction)
	}
	return nil
}

// momentumUpdate is the op that moves w and its velocities. Inputs: w, dw and v of w's shape, rates
// and temperatures by step, the rule's states, more inputs, header. Output: statistics, see
// op.UpdateShape.
type momentumUpdate struct {
	rule         momentumRule
	states       int
	more         int // inputs after the states
	dataSize     int
	prior        Prior
	noise, start uint16 // streams of xi and of the velocities at step 0
}

// The positions of the inputs. The position of a launch's argument is higher by one, because the
// output comes first. The header is the last input.
const (
	momentumW = iota
	momentumDW
	momentumV
	momentumRates
	momentumTemperatures
	momentumStates
)

func (u momentumUpdate) Name() string { return u.rule.Name() + " update" }

func (u momentumUpdate) Updates() []int {
	// The rule changes its own states, too: the compiler orders readers of these inputs before the
	// update.
	updates := []int{momentumW, momentumV}
	for i := range u.states {
		updates = append(updates, momentumStates+i)
	}
	return updates
}

func (u momentumUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	shape, err := op.UpdateShape(in, 1, 2+u.states+u.more) // states and further inputs have one axis, like tables
	if err != nil {
		return shape, err
	}
	for i, m := range u.rule.states(in[0].Elements()) {
		if got := in[momentumStates+i][0]; got != m.size {
			return nil, errors.Errorf("state %q of a parameter of shape %v must have %d elements, got %d", m.suffix, in[0], m.size, got)
		}
	}
	return shape, nil
}

func (u momentumUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	arguments := []tensor.Argument{l.Out(), l.InOut(momentumW), l.In(momentumDW), l.InOut(momentumV), l.In(momentumRates), l.In(momentumTemperatures)}
	for i := range u.states {
		arguments = append(arguments, l.InOut(momentumStates+i))
	}
	for i := range u.more {
		arguments = append(arguments, l.In(momentumStates+u.states+i))
	}
	suffix, host, scalars := u.rule.lower(l, u)
	arguments = append(arguments, l.In(len(l.Shapes)-1), tensor.Int(n), tensor.Int(l.Shapes[momentumRates][0]),
		tensor.Int(l.Shapes[momentumTemperatures][0]), tensor.Uint(uint32(u.noise)), tensor.Uint(uint32(u.start)))
	for _, v := range scalars {
		arguments = append(arguments, tensor.Float(tensor.Float64, v))
	}
	// Attributes are passed as float64 whatever the program's float: kernels round products of
	// them, such as 1 - friction, once.
	stem, arguments := u.rule.Name()+"_update"+suffix, append(arguments, u.prior.KernelArguments(l.DType, u.dataSize)...)
	calls := []tensor.Call{l.Call(stem, op.UpdateGrid(n), arguments...)}
	if several, ok := u.rule.(severalCalls); ok {
		calls = several.calls(l, calls[0])
	}
	l.EmitCalls(stem, calls, host, arguments...)
}

// momentumTile holds the data for updating the parameters lo to hi at one step. Updates process it
// in blocks of random.BlockSize.
type momentumTile[T float32 | float64] struct {
	w, dw, v    []T
	term        priorTerm[T]
	rate        T
	h           float64
	temperature float64
	noise       random.Address
	start       random.Address
	first       int // number of the tile's first block, for the noise
	virial      float64
}

// momentumTileOf reads a launch's arguments for the parameters lo to hi.
func momentumTileOf[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) momentumTile[T] {
	header := u.header(a)
	rate := op.Entry(tensor.Slice[T](a, 1+momentumRates), header)
	return momentumTile[T]{
		w: tensor.Slice[T](a, 1+momentumW)[lo:hi], dw: tensor.Slice[T](a, 1+momentumDW)[lo:hi], v: tensor.Slice[T](a, 1+momentumV)[lo:hi],
		term: priorTermOf[T](u.prior, u.dataSize), rate: rate, h: float64(rate) / float64(u.dataSize),
		temperature: float64(op.Entry(tensor.Slice[T](a, 1+momentumTemperatures), header)),
		noise:       op.AddressOf(header, u.noise), start: op.AddressOf(header, u.start), first: lo / random.BlockSize,
	}
}

// tileAt returns the number of the tile that begins at element lo.
func tileAt[T float32 | float64](a *tensor.Args, lo int) int {
	return lo / op.UpdateTile(len(tensor.Slice[T](a, 1+momentumW)))
}

// header returns the header, which comes last.
func (u momentumUpdate) header(a *tensor.Args) []uint64 {
	return tensor.Slice[uint64](a, 1+momentumStates+u.states+u.more)
}

// scale returns the standard deviation of the velocities' noise for a friction of the given
// strength.
func (s *momentumTile[T]) scale(strength float64) T {
	return T(NoiseScale(s.h, s.temperature, strength))
}

// nextBlock prepares the block that begins at from: it fills in the gradients of U/N, the noise,
// and at step 0 the velocities.
func (s *momentumTile[T]) nextBlock(from int, gradients *[random.BlockSize]T, z *[random.BlockSize]float32) (w, v, g []T) {
	w, v, g = s.gradientBlock(from, gradients, z)
	s.draw(from, z)
	return w, v, g
}

// gradientBlock is nextBlock without the noise; z is scratch memory.
func (s *momentumTile[T]) gradientBlock(from int, gradients *[random.BlockSize]T, z *[random.BlockSize]float32) (w, v, g []T) {
	to := min(from+random.BlockSize, len(s.w))
	w, v, g = s.w[from:to], s.v[from:to], gradients[:to-from]
	s.virial += s.term.fill(g, w, s.dw[from:])
	if s.start.Step == 0 && s.temperature > 0 {
		random.NormalBlock(s.start, s.first+from/random.BlockSize, len(w), z)
		// A strength of 1/2 is the variance 2 h T/2 = h T of velocities in equilibrium.
		scale := s.scale(0.5)
		for i := range v {
			v[i] = T(scale * T(z[i]))
		}
	}
	return w, v, g
}

// draw fills in the noise of the block that begins at from: 0 at temperature 0.
func (s *momentumTile[T]) draw(from int, z *[random.BlockSize]float32) {
	if s.temperature > 0 {
		random.NormalBlock(s.noise, s.first+from/random.BlockSize, min(random.BlockSize, len(s.w)-from), z)
		return
	}
	clear(z[:])
}
