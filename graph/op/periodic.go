package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Periodic is the value of a periodic schedule: table [M], header -> y = table[step mod M], a
// scalar. It has no gradient: schedules are not learned. Bayes by Backprop weights the minibatches
// of an epoch with it.
type Periodic struct{}

// Name implements graph.Op.
func (Periodic) Name() string { return "periodic" }

// InputType implements graph.Mixed.
func (Periodic) InputType(i int) tensor.DType { return [...]tensor.DType{1: tensor.Uint64}[i] }

// Shape implements graph.Op.
func (Periodic) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return tensor.Shape{}, checkRanks(in, 1, 1)
}

// Lower implements graph.Op.
func (Periodic) Lower(l *graph.Lowering) {
	run := graph.Pick(l, periodic[float32], periodic[float64])
	l.Emit("periodic_fwd", tensor.Threads(1), tensor.Single(run), l.Out(), l.In(0), l.In(1), tensor.Int(l.Shapes[0][0]))
}

func periodic[T float32 | float64](a *tensor.Args) {
	table, header := tensor.Slice[T](a, 1), tensor.Slice[uint64](a, 2)
	tensor.Slice[T](a, 0)[0] = table[header[graph.HeaderStep]%uint64(len(table))]
}
