package mcmc

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// AcceptanceTest selects the potential that MALA's test uses as U.
type AcceptanceTest string

// The tests.
const (
	// AcceptanceExact uses the potential of all data. It is the default.
	AcceptanceExact AcceptanceTest = ""
	// AcceptanceMinibatch uses the estimate of the potential from a minibatch, the same minibatch
	// for both sides of a test and another for each proposal. The result is NOT exp(-U/T), at any
	// step size: each minibatch pulls towards its own distribution, and the noise of their
	// differences, which the test takes as exact, widens the posterior. It exists for comparison.
	AcceptanceMinibatch AcceptanceTest = "approximate, on the minibatch"
)

// MALA is the Metropolis-adjusted Langevin algorithm (Roberts and Tweedie 1996): a step of SGLD
// with the gradient of U is the proposal for Metropolis,
//
//	theta' = theta - h gU(theta) + sqrt(2 h T) xi,    xi ~ N(0, 1)
//	log q(theta'|theta) = -|theta' - theta + h gU(theta)|^2 / (4 h T) + constant
//
// The step size is h, as in SGLD. The optimal acceptance rate in many dimensions is 0.574 (Roberts
// and Rosenthal 1998).
type MALA struct {
	Test AcceptanceTest
}

var _ Proposal = MALA{}

// Name implements Proposal.
func (MALA) Name() string { return "mala" }

// Validate implements Proposal.
func (m MALA) Validate() error {
	if m.Test != AcceptanceExact && m.Test != AcceptanceMinibatch {
		return errors.Errorf("mcmc: mala: Test must be %q or %q, got %q", AcceptanceExact, AcceptanceMinibatch, m.Test)
	}
	return nil
}

// BatchHeader returns the header for the ops that gather minibatches. Under AcceptanceMinibatch its
// step counts proposals: a proposal takes two steps of the program, one for each side of the test,
// which must see the same minibatch. Under AcceptanceExact it is the builder's header.
func (m MALA) BatchHeader(b *graph.Builder) *graph.Node {
	if !m.cycle().paired {
		return b.Header()
	}
	return b.Apply(countProposals{m.cycle().evaluations}, b.Header())
}

func (m MALA) cycle() proposalCycle {
	if m.Test == AcceptanceMinibatch {
		return proposalCycle{evaluations: 2, paired: true}
	}
	return proposalCycle{evaluations: 1}
}

func (MALA) optimum() float64          { return 0.574 }
func (MALA) jitter() float64           { return 0 }
func (MALA) gradients() bool           { return true }
func (MALA) check([]*graph.Node) error { return nil }

func (m MALA) attach(b *graph.Builder, p proposed) proposalNodes {
	name, shape := p.parameter.Name(), graph.ShapeOf(p.parameter)
	position := b.State(name+langevin.PositionSuffix, nil, shape...)
	slope := b.State(name+".slope", nil, shape...)
	update := malaMove{m.cycle(), p.temperature, b.Stream()}
	return proposalNodes{
		logRatio: b.Apply(malaLogRatio{m.cycle(), p.temperature}, p.parameter, p.gradient, position, slope, p.chain, b.Header()),
		move: func(decision *graph.Node) *graph.Node {
			return b.Apply(update, p.parameter, p.gradient, position, slope, decision, b.Header())
		},
	}
}

// malaLogRatio is log q(theta|theta') - log q(theta'|theta) in the step that decides on the
// proposal theta', else 0. Inputs: theta', the gradient there, theta and the gradient there, all of
// w's shape, the chain's words, header. Output: sums by tile.
type malaLogRatio struct {
	cycle       proposalCycle
	temperature float64
}

func (malaLogRatio) Name() string { return "mala share" }

func (malaLogRatio) Shape(in []tensor.Shape) (tensor.Shape, error) { return op.UpdateShape(in, 2, 1) }

func (s malaLogRatio) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("mala_share", op.UpdateGrid(n), op.UpdateHost(l, n, s, nil, malaLogRatio.tile), l.Out(), l.In(0), l.In(1), l.In(2), l.In(3), l.In(4), l.In(5),
		tensor.Int(n), tensor.Float(l.DType, s.temperature), tensor.Int(s.cycle.evaluations))
}

// tile returns a tile's part of log q(old | new) - log q(new | old), where a proposal q(new | old)
// is N(old - h grad U(old), 2 h T).
func (s malaLogRatio) tile(a *tensor.Args, lo, hi int) float64 {
	if !s.cycle.decides(tensor.Slice[uint64](a, 6)[graph.HeaderStep]) {
		return 0
	}
	w, dw := tensor.Slice[float64](a, 1)[lo:hi], tensor.Slice[float64](a, 2)[lo:hi]
	position, slope := tensor.Slice[float64](a, 3)[lo:hi], tensor.Slice[float64](a, 4)[lo:hi]
	h := tensor.Slice[float64](a, 5)[wordStep]
	there, back := 0.0, 0.0
	for i, proposal := range w {
		forward := proposal - position[i] + float64(h*slope[i])
		backward := position[i] - proposal + float64(h*dw[i])
		there += float64(forward * forward)
		back += float64(backward * backward)
	}
	return (there - back) / (4 * h * s.temperature)
}

// malaMove applies the decision to a parameter and proposes from its position. Inputs: w, dw, the
// position and the gradient there of w's shape, the chain's words, header. Output: the sum of theta
// * g at the position, by tile.
type malaMove struct {
	cycle       proposalCycle
	temperature float64
	stream      uint16
}

func (malaMove) Name() string   { return "mala move" }
func (malaMove) Updates() []int { return []int{0, 2, 3} }

func (malaMove) Shape(in []tensor.Shape) (tensor.Shape, error) { return op.UpdateShape(in, 2, 1) }

func (u malaMove) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("mala_move", op.UpdateGrid(n), op.UpdateHost(l, n, u, nil, malaMove.tile), l.Out(), l.InOut(0), l.In(1), l.InOut(2), l.InOut(3), l.In(4), l.In(5),
		tensor.Int(n), tensor.Float(l.DType, u.temperature), tensor.Int(u.cycle.evaluations), tensor.Uint(uint32(u.stream)))
}

// tile returns a tile to its position if the last proposal was rejected, and then proposes a step
// of Langevin dynamics from there.
func (u malaMove) tile(a *tensor.Args, lo, hi int) float64 {
	w, dw := tensor.Slice[float64](a, 1)[lo:hi], tensor.Slice[float64](a, 2)[lo:hi]
	position, slope := tensor.Slice[float64](a, 3)[lo:hi], tensor.Slice[float64](a, 4)[lo:hi]
	words, header := tensor.Slice[float64](a, 5), tensor.Slice[uint64](a, 6)
	applyDecisionWithGradient(words, w, dw, position, slope)
	if !u.cycle.starts(header[graph.HeaderStep]) {
		return kernel.Dot(position, slope)
	}
	h := words[wordStep]
	scale := langevin.NoiseScale(h, u.temperature, 1)
	address := op.AddressOf(header, u.stream)
	var z [random.BlockSize]float64
	for from := 0; from < len(w); from += random.BlockSize {
		w, slope := w[from:min(from+random.BlockSize, len(w))], slope[from:]
		random.Normals(z[:len(w)], lo+from, address)
		for i := range w {
			w[i] = op.Descend(w[i], h, slope[i]) + float64(scale*z[i])
		}
	}
	return kernel.Dot(position, slope)
}

// applyDecisionWithGradient is applyDecision for proposals that use gradients: slope becomes the
// gradient at the new position.
func applyDecisionWithGradient(words, w, dw, position, slope []float64) {
	applyDecision(words, w, position)
	if words[wordAccepted] == 1 {
		copy(slope, dw)
	}
}
