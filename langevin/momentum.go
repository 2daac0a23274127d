package langevin

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// KineticPrefix begins the names of the metrics that samplers with momentum record: d times the
// kinetic temperature of a parameter of d elements when the step begins.
const KineticPrefix = "kinetic "

// momentumRule is a Sampler with velocities: v is what theta moves by in a step. In equilibrium v
// has the variance h T, so that in the notation of physics, with a mass of 1 and the time step e, h
// is e^2 and v is e times the momentum. Velocities start at step 0 as draws from N(0, h T). They
// keep their size when h changes from one step to the next, and adapt within 1/friction steps.
type momentumRule interface {
	Sampler
	// states are those besides v that a parameter of n elements has.
	states(n int) []momentumState
	// lower is the update's kernel: what follows its stem in the symbol, the host side, and the
	// attributes as kernels take them.
	lower(l *graph.Lowering, u momentumUpdate) (suffix string, host tensor.HostKernel, scalars []float64)
}

// momentumState is a state of a momentumRule, of one axis: what follows the parameter's name in its
// own, its size and what it starts with, 0 if nil.
type momentumState struct {
	suffix string
	size   int
	start  graph.Initializer
}

// severalCalls is a momentumRule whose update may take a GPU several calls. The given call has the
// update's stem, grid and arguments: the places below, n, the lengths of rates and temperatures,
// the streams, the rule's attributes, and the prior with the size of the data set at its end.
type severalCalls interface {
	calls(l *graph.Lowering, update tensor.Call) []tensor.Call
}

// kicked is a momentumRule that begins with all of the force, and whose kinetic temperature is the
// mean of that before the force and that after it: in a steady state with the noise of minibatches,
// which the force brings in and friction takes out, theirs is T where U is flat.
type kickFirst interface{ kickFirst() bool }

// attachMomentum is what the Update of every sampler with momentum does. The mass is the factor
// from v v/h to the kinetic temperature.
func attachMomentum(b *graph.Builder, r momentumRule, f UpdateInputs, parameter, gradient *graph.Node, mass float64) *graph.Node {
	shape := graph.ShapeOf(parameter)
	states := r.states(shape.Elements())
	u := momentumUpdate{rule: r, states: len(states), dataSize: f.DataSize, prior: f.Prior, noise: b.Stream(), start: b.Stream()}
	v := b.State(f.Name+".momentum", nil, shape...)
	if k, ok := r.(kickFirst); ok && k.kickFirst() {
		b.Record(KineticPrefix+f.Name, b.Apply(kickedKinetic{Prior: f.Prior, DataSize: f.DataSize}, v, parameter, gradient, f.Rates, b.Header()))
	} else {
		b.Record(KineticPrefix+f.Name, b.Apply(kinetic{Mass: mass, DataSize: f.DataSize}, v, f.Rates, b.Header()))
	}
	inputs := []*graph.Node{parameter, gradient, v, f.Rates, f.Temperatures}
	for _, m := range states {
		inputs = append(inputs, b.State(f.Name+m.suffix, m.start, m.size))
	}
	return b.Apply(u, append(inputs, b.Header())...)
}

// checkFriction checks the friction of one step, of a sampler that takes any above 0.
func checkFriction(name string, friction float64) error {
	if !positive(friction) {
		return errors.Errorf("langevin: %s: Friction must be positive, got %v", name, friction)
	}
	return nil
}

// checkBoundedFriction is checkFriction where 1 is the most.
func checkBoundedFriction(name string, friction float64) error {
	if !(friction > 0 && friction <= 1) {
		return errors.Errorf("langevin: %s: Friction must be above 0 and at most 1, got %v", name, friction)
	}
	return nil
}

func positive(v float64) bool { return v > 0 && v < math.Inf(1) }

// momentumUpdate is the move of w and its velocities: w, dw and v of w's shape, rates and
// temperatures by step, the rule's states, header -> statistics, see op.UpdateShape.
type momentumUpdate struct {
	rule         momentumRule
	states       int
	dataSize     int
	prior        Prior
	noise, start uint16 // streams
}

// The places of the inputs, and, one further, of a launch's arguments. The header comes last.
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
	updates := []int{momentumW, momentumV}
	for i := range u.states {
		updates = append(updates, momentumStates+i)
	}
	return updates
}

func (u momentumUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	shape, err := op.UpdateShape(in, 1, 2+u.states) // they have one axis, like tables
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
	suffix, host, scalars := u.rule.lower(l, u)
	arguments = append(arguments, l.In(len(l.Shapes)-1), tensor.Int(n), tensor.Int(l.Shapes[momentumRates][0]),
		tensor.Int(l.Shapes[momentumTemperatures][0]), tensor.Uint(uint32(u.noise)), tensor.Uint(uint32(u.start)))
	for _, v := range scalars {
		arguments = append(arguments, tensor.Float(tensor.Float64, v))
	}
	stem, arguments := u.rule.Name()+"_update"+suffix, append(arguments, u.prior.KernelArguments(l.DType, u.dataSize)...)
	calls := []tensor.Call{l.Call(stem, op.UpdateGrid(n), arguments...)}
	if several, ok := u.rule.(severalCalls); ok {
		calls = several.calls(l, calls[0])
	}
	l.EmitCalls(stem, calls, host, arguments...)
}

// sweep is an update's work on parameters lo to hi at one step, done in blocks.
type momentumTile[T float32 | float64] struct {
	w, dw, v    []T
	term        priorTerm[T]
	rate        T
	h           float64
	temperature float64
	noise       random.Address
	start       random.Address
	first       int // block
	virial      float64
}

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

// tileAt is the tile that begins at lo.
func tileAt[T float32 | float64](a *tensor.Args, lo int) int {
	return lo / op.UpdateTile(len(tensor.Slice[T](a, 1+momentumW)))
}

// header follows the rule's states.
func (u momentumUpdate) header(a *tensor.Args) []uint64 {
	return tensor.Slice[uint64](a, 1+momentumStates+u.states)
}

// scale is the standard deviation of velocities' noise of that strength.
func (s *momentumTile[T]) scale(strength float64) T {
	return T(NoiseScale(s.h, s.temperature, strength))
}

// block begins the move of the block at from: it fills in the gradients of U/N and the noise, and
// at step 0 the velocities.
func (s *momentumTile[T]) nextBlock(from int, gradients *[random.BlockSize]T, z *[random.BlockSize]float32) (w, v, g []T) {
	w, v, g = s.gradientBlock(from, gradients, z)
	s.draw(from, z)
	return w, v, g
}

// forces is block without the noise, for which z is scratch memory.
func (s *momentumTile[T]) gradientBlock(from int, gradients *[random.BlockSize]T, z *[random.BlockSize]float32) (w, v, g []T) {
	to := min(from+random.BlockSize, len(s.w))
	w, v, g = s.w[from:to], s.v[from:to], gradients[:to-from]
	s.virial += s.term.fill(g, w, s.dw[from:])
	if s.start.Step == 0 && s.temperature > 0 {
		random.NormalBlock(s.start, s.first+from/random.BlockSize, len(w), z)
		scale := s.scale(0.5)
		for i := range v {
			v[i] = T(scale * T(z[i]))
		}
	}
	return w, v, g
}

// draw fills in the noise of the block at from: 0 at temperature 0.
func (s *momentumTile[T]) draw(from int, z *[random.BlockSize]float32) {
	if s.temperature > 0 {
		random.NormalBlock(s.noise, s.first+from/random.BlockSize, min(random.BlockSize, len(s.w)-from), z)
		return
	}
	clear(z[:])
}
