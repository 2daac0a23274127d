package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// ScaledEntry is a table's entry at the header's step, or its last entry after its end, times one
// of several factors: table [n], factors [k], state [m], header -> [1]. The first element of the
// state, which differs between chains, is the index of the factor, from 0 to k-1. All chains can
// thus share one table of learning rates, and each can use a fraction of them.
type ScaledEntry struct{}

// Name implements graph.Op.
func (ScaledEntry) Name() string { return "scaled entry" }

// Shape implements graph.Op.
func (ScaledEntry) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 4 || len(in[0]) != 1 || len(in[1]) != 1 || len(in[2]) != 1 {
		return nil, errors.Errorf("must have a table, factors, a state and the header, each with one axis, got shapes %v", in)
	}
	return tensor.Shape{1}, nil
}

// Lower implements graph.Op.
func (ScaledEntry) Lower(l *graph.Lowering) {
	run := graph.Pick(l, scaledEntry[float32], scaledEntry[float64])
	l.Emit("scaled_entry_fwd", tensor.Threads(1), tensor.Single(run),
		l.Out(), l.In(0), l.In(1), l.In(2), l.In(3), tensor.Int(l.Shapes[0][0]), tensor.Int(l.Shapes[1][0]))
}

func scaledEntry[T float32 | float64](a *tensor.Args) {
	factors, state := tensor.Slice[T](a, 2), tensor.Slice[T](a, 3)
	tensor.Slice[T](a, 0)[0] = Entry(tensor.Slice[T](a, 1), tensor.Slice[uint64](a, 4)) * factors[int(state[0])]
}
