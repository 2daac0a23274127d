package mcmc

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// HMC is Hamiltonian Monte Carlo (Duane, Kennedy, Pendleton and Roweth 1987; Neal 2011, section
// 5.3). Its proposal is the end of a trajectory of LeapfrogSteps steps that begins with momenta p ~
// N(0, T M), for Metropolis on H = U(theta) + p' M^-1 p / 2:
//
//	p     <- p - (e/2) gU(theta)
//	theta <- theta + e M^-1 p
//	p     <- p - (e/2) gU(theta)
//
// The step size is e, the time of a leapfrog step; with one step and M = 1, it is MALA of h =
// e^2/2. Each leapfrog step evaluates U's gradient once. The error of energies is of order e^2.
// Within a trajectory the program's parameters are not draws; the states "<parameter>.position"
// always are.
//
// The optimal acceptance rate is 0.651 in many dimensions (Beskos, Pillai, Roberts, Sanz-Serna and
// Stuart 2013); adapting to 0.8 is more robust.
type HMC struct {
	LeapfrogSteps int // of a trajectory
	// Jitter, in [0, 1), makes each trajectory's step size uniform between 1 - Jitter and 1 +
	// Jitter times the step size. Without it a trajectory may last whole periods of a direction and
	// end where it began.
	Jitter float64
	// Masses is M's diagonal by parameter, in row-major order; parameters that are not named have
	// masses of 1. The best masses are the inverse variances.
	Masses map[string][]float64
}

var _ Proposal = HMC{}

// Name implements Proposal.
func (HMC) Name() string { return "hmc" }

// Validate implements Proposal.
func (h HMC) Validate() error {
	switch {
	case h.LeapfrogSteps < 1 || h.LeapfrogSteps > math.MaxInt32:
		return errors.Errorf("mcmc: hmc: LeapfrogSteps must be 1 to %d, got %d", math.MaxInt32, h.LeapfrogSteps)
	case !(h.Jitter >= 0 && h.Jitter < 1):
		return errors.Errorf("mcmc: hmc: Jitter must be at least 0 and below 1, got %v", h.Jitter)
	}
	for name, masses := range h.Masses {
		for i, mass := range masses {
			if !positive(mass) {
				return errors.Errorf("mcmc: hmc: mass %d of %q must be positive, got %v", i, name, mass)
			}
		}
	}
	return nil
}

func (h HMC) cycle() proposalCycle { return proposalCycle{evaluations: h.LeapfrogSteps} }
func (HMC) optimum() float64       { return 0.651 }
func (h HMC) jitter() float64      { return h.Jitter }
func (HMC) gradients() bool        { return true }

func (h HMC) check(parameters []*graph.Node) error {
	sizes, names := map[string]int{}, []string{}
	for _, parameter := range parameters {
		sizes[parameter.Name()] = graph.ShapeOf(parameter).Elements()
		names = append(names, parameter.Name())
	}
	for name, masses := range h.Masses {
		n, ok := sizes[name]
		if !ok {
			return errors.Errorf("mcmc: hmc: masses of %q: there is no such parameter; there are %q", name, names)
		}
		if n != len(masses) {
			return errors.Errorf("mcmc: hmc: masses of %q: there must be one for each of its %d elements, got %d", name, n, len(masses))
		}
	}
	return nil
}

// attach adds the states of a trajectory for one parameter: its starting point and slope, which a
// rejected proposal restores, and the momentum.
func (h HMC) attach(b *graph.Builder, p proposed) proposalNodes {
	name, shape := p.parameter.Name(), graph.ShapeOf(p.parameter)
	position := b.State(name+langevin.PositionSuffix, nil, shape...)
	slope := b.State(name+".slope", nil, shape...)
	momentum := b.State(name+".momentum", nil, shape...)
	t := trajectory{h.cycle(), p.temperature, b.Stream(), false}
	var masses []*graph.Node
	if values, ok := h.Masses[name]; ok {
		t.masses, masses = true, []*graph.Node{b.Table(name+".mass", values)}
	}
	with := func(last *graph.Node, nodes ...*graph.Node) []*graph.Node {
		return append(append(append(nodes, last), masses...), b.Header())
	}
	return proposalNodes{
		logRatio: b.Apply(hmcLogRatio{t}, with(p.chain, momentum, p.gradient)...),
		kinetic:  b.Apply(hmcKinetic{t, shape.Elements()}, b.Header()),
		move: func(decision *graph.Node) *graph.Node {
			return b.Apply(hmcMove{t}, with(decision, p.parameter, p.gradient, position, slope, momentum)...)
		},
	}
}

// trajectory has the attributes that the log ratio and the move of a parameter share. The inputs of
// both end with the chain's words, the masses if there are any, and the header.
type trajectory struct {
	cycle       proposalCycle
	temperature float64
	stream      uint16
	masses      bool
}

// shape returns the shape of an update whose first n inputs have w's shape.
func (t trajectory) shape(in []tensor.Shape, n int) (tensor.Shape, error) {
	tables := 1
	if t.masses {
		tables = 2
	}
	shape, err := op.UpdateShape(in, n-2, tables)
	if err == nil && t.masses && in[n+1][0] != in[0].Elements() {
		err = errors.Errorf("a parameter of shape %v must have as many masses, got %v", in[0], in[n+1])
	}
	return shape, err
}

// arguments returns a launch's arguments from the words on: the buffers from input first on, then
// scalars.
func (t trajectory) arguments(l *graph.Lowering, first, n int) []tensor.Argument {
	var arguments []tensor.Argument
	for i := first; i < len(l.Shapes); i++ {
		arguments = append(arguments, l.In(i))
	}
	return append(arguments, tensor.Int(n), tensor.Int(t.cycle.evaluations), tensor.Float(l.DType, t.temperature), tensor.Uint(uint32(t.stream)))
}

// suffix ends the names of the kernels.
func (t trajectory) suffix() string {
	if t.masses {
		return "_masses"
	}
	return ""
}

// context returns the step size, the masses of the tile lo to hi, nil if there are none, and the
// header. first is the position of the argument that holds the words.
func (t trajectory) context(a *tensor.Args, first, lo, hi int) (e float64, masses []float64, header []uint64) {
	e = tensor.Slice[float64](a, first)[wordStep]
	if t.masses {
		first++
		masses = tensor.Slice[float64](a, first)[lo:hi]
	}
	return e, masses, tensor.Slice[uint64](a, first+1)
}

// hmcLogRatio is K(p)/T at the trajectory's start minus K(p)/T at its end, with K(p) = p' M^-1 p /
// 2, in the step that ends the trajectory, else 0. Inputs: p and dw of w's shape, the chain's
// words, masses if there are any, header. Output: sums by tile. It draws the momenta of the start
// again instead of keeping them.
type hmcLogRatio struct{ trajectory trajectory }

func (hmcLogRatio) Name() string { return "hmc share" }

func (s hmcLogRatio) Shape(in []tensor.Shape) (tensor.Shape, error) { return s.trajectory.shape(in, 2) }

func (s hmcLogRatio) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("hmc_share"+s.trajectory.suffix(), op.UpdateGrid(n), op.UpdateHost(l, n, s, nil, hmcLogRatio.tile),
		append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, s.trajectory.arguments(l, 2, n)...)...)
}

// tile returns a tile's part of K(start) - K(end), over T, for the kinetic energy K. The momentum
// at the start is not kept: its standard normal numbers are generated again from their address. The
// momentum at the end still lacks the last half kick.
func (s hmcLogRatio) tile(a *tensor.Args, lo, hi int) float64 {
	t := s.trajectory
	e, masses, header := t.context(a, 3, lo, hi)
	if !t.cycle.decides(header[graph.HeaderStep]) {
		return 0
	}
	p, dw := tensor.Slice[float64](a, 1)[lo:hi], tensor.Slice[float64](a, 2)[lo:hi]
	address := op.AddressOf(header, t.stream)
	address.Step -= uint64(t.cycle.evaluations)
	var z [random.BlockSize]float64
	start, end := 0.0, 0.0
	for from := 0; from < len(p); from += random.BlockSize {
		p, dw := p[from:min(from+random.BlockSize, len(p))], dw[from:]
		random.Normals(z[:len(p)], lo+from, address)
		for i := range p {
			momentum := op.Descend(p[i], e/2, dw[i])
			square := float64(momentum * momentum)
			if masses != nil {
				square /= masses[from+i]
			}
			start += float64(z[i] * z[i])
			end += square
		}
	}
	return (start - end/t.temperature) / 2
}

// hmcKinetic is K(p)/T at the trajectory's start, in the step that ends the trajectory, else 0. It
// depends neither on T nor on the masses: it is half the sum of the squares of the standard normal
// numbers that the momenta were made from. Input: header. Output: sums by tile.
type hmcKinetic struct {
	trajectory trajectory
	elements   int // of the parameter
}

func (hmcKinetic) Name() string               { return "hmc kinetic" }
func (hmcKinetic) InputType(int) tensor.DType { return tensor.Uint64 }

func (k hmcKinetic) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 1 {
		return nil, errors.Errorf("must have one input, the header, got %d", len(in))
	}
	return tensor.Shape{op.UpdateTiles(k.elements)}, nil
}

func (k hmcKinetic) Lower(l *graph.Lowering) {
	l.Emit("hmc_kinetic", op.UpdateGrid(k.elements), op.UpdateHost(l, k.elements, k, nil, hmcKinetic.tile),
		l.Out(), l.In(0), tensor.Int(k.elements), tensor.Int(k.trajectory.cycle.evaluations), tensor.Uint(uint32(k.trajectory.stream)))
}

func (k hmcKinetic) tile(a *tensor.Args, lo, hi int) float64 {
	t, header := k.trajectory, tensor.Slice[uint64](a, 1)
	if !t.cycle.decides(header[graph.HeaderStep]) {
		return 0
	}
	address := op.AddressOf(header, t.stream)
	address.Step -= uint64(t.cycle.evaluations)
	var z [random.BlockSize]float64
	squares := 0.0
	for from := lo; from < hi; from += random.BlockSize {
		z := z[:min(random.BlockSize, hi-from)]
		random.Normals(z, from, address)
		squares += kernel.Dot(z, z)
	}
	return squares / 2
}

// hmcMove makes a leapfrog step. Where a trajectory ends, it first applies the decision and then
// begins another trajectory at the position. Inputs: w, dw, the position, the gradient there and p,
// of w's shape, the chain's words, masses if there are any, header. Output: the sum of theta * g at
// the position, by tile.
type hmcMove struct{ trajectory trajectory }

func (hmcMove) Name() string   { return "hmc move" }
func (hmcMove) Updates() []int { return []int{0, 2, 3, 4} }

func (u hmcMove) Shape(in []tensor.Shape) (tensor.Shape, error) { return u.trajectory.shape(in, 5) }

func (u hmcMove) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("hmc_move"+u.trajectory.suffix(), op.UpdateGrid(n), op.UpdateHost(l, n, u, nil, hmcMove.tile), append([]tensor.Argument{
		l.Out(), l.InOut(0), l.In(1), l.InOut(2), l.InOut(3), l.InOut(4),
	}, u.trajectory.arguments(l, 5, n)...)...)
}

// tile makes a leapfrog step of a tile: a kick, by half a step at the start of a trajectory, and a
// drift. The two half kicks between drifts are one whole kick.
func (u hmcMove) tile(a *tensor.Args, lo, hi int) float64 {
	t := u.trajectory
	e, masses, header := t.context(a, 6, lo, hi)
	w, dw := tensor.Slice[float64](a, 1)[lo:hi], tensor.Slice[float64](a, 2)[lo:hi]
	position, slope := tensor.Slice[float64](a, 3)[lo:hi], tensor.Slice[float64](a, 4)[lo:hi]
	p := tensor.Slice[float64](a, 5)[lo:hi]
	kick, force := e, dw
	if t.cycle.starts(header[graph.HeaderStep]) {
		applyDecisionWithGradient(tensor.Slice[float64](a, 6), w, dw, position, slope)
		t.draw(p, masses, lo, op.AddressOf(header, t.stream))
		kick, force = e/2, slope
	}
	for i := range w {
		p[i] = op.Descend(p[i], kick, force[i])
		velocity := p[i]
		if masses != nil {
			velocity /= masses[i]
		}
		w[i] += float64(e * velocity)
	}
	return kernel.Dot(position, slope)
}

// draw fills p with momenta ~ N(0, T M), for the elements from first on.
func (t trajectory) draw(p, masses []float64, first int, address random.Address) {
	random.Normals(p, first, address)
	for i := range p {
		variance := t.temperature
		if masses != nil {
			variance *= masses[i]
		}
		p[i] *= math.Sqrt(variance)
	}
}
