package mcmc

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// RandomWalk proposes theta' = theta + s xi, xi ~ N(0, 1), for Metropolis (Metropolis et al. 1953,
// with Gaussian steps). The step size is s, the standard deviation. It needs no gradient of U. The
// optimal acceptance rate in many dimensions is 0.234 (Roberts, Gelman and Gilks 1997).
type RandomWalk struct{}

var _ Proposal = RandomWalk{}

// Name implements Proposal.
func (RandomWalk) Name() string { return "random-walk metropolis" }

// Validate implements Proposal.
func (RandomWalk) Validate() error { return nil }

func (RandomWalk) cycle() proposalCycle      { return proposalCycle{evaluations: 1} }
func (RandomWalk) optimum() float64          { return 0.234 }
func (RandomWalk) jitter() float64           { return 0 }
func (RandomWalk) gradients() bool           { return false }
func (RandomWalk) check([]*graph.Node) error { return nil }

func (RandomWalk) attach(b *graph.Builder, p proposed) proposalNodes {
	position := b.State(p.parameter.Name()+langevin.PositionSuffix, nil, graph.ShapeOf(p.parameter)...)
	update := randomWalkMove{b.Stream()}
	return proposalNodes{move: func(decision *graph.Node) *graph.Node {
		return b.Apply(update, p.parameter, position, decision, b.Header())
	}}
}

// randomWalkMove applies the decision to a parameter and proposes from its position: w and the
// position of w's shape, the chain's words, header -> zeros by tile.
type randomWalkMove struct{ stream uint16 }

func (randomWalkMove) Name() string   { return "random walk move" }
func (randomWalkMove) Updates() []int { return []int{0, 1} }

func (randomWalkMove) Shape(in []tensor.Shape) (tensor.Shape, error) { return op.UpdateShape(in, 0, 1) }

func (u randomWalkMove) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("random_walk_move", op.UpdateGrid(n), op.UpdateHost(l, n, u, nil, randomWalkMove.tile), l.Out(), l.InOut(0), l.InOut(1), l.In(2), l.In(3),
		tensor.Int(n), tensor.Uint(uint32(u.stream)))
}

// tile returns a tile to its position if the last proposal was rejected, and then proposes to add
// normal noise.
func (u randomWalkMove) tile(a *tensor.Args, lo, hi int) float64 {
	w, position := tensor.Slice[float64](a, 1)[lo:hi], tensor.Slice[float64](a, 2)[lo:hi]
	words := tensor.Slice[float64](a, 3)
	applyDecision(words, w, position)
	address := op.AddressOf(tensor.Slice[uint64](a, 4), u.stream)
	var z [random.BlockSize]float64
	for from := 0; from < len(w); from += random.BlockSize {
		w := w[from:min(from+random.BlockSize, len(w))]
		random.Normals(z[:len(w)], lo+from, address)
		for i := range w {
			w[i] += float64(words[wordStep] * z[i])
		}
	}
	return 0
}

// applyDecision makes an accepted parameter the position, and resets a rejected one to the
// position.
func applyDecision(words, w, position []float64) {
	if words[wordAccepted] == 1 {
		copy(position, w)
	} else {
		copy(w, position)
	}
}
