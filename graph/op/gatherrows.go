package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// GatherRows copies a step's examples, the rows of a data set of floats: x [N ...],
// header -> y [B ...]. It has no gradient: x is data. Regressions on tables use it. If a step sees
// all examples in order, y is x itself, without a copy.
type GatherRows struct {
	Batch Batch
}

// Name implements graph.Op.
func (GatherRows) Name() string { return "gather rows" }

// View implements graph.Viewer.
func (g GatherRows) View(in []tensor.Shape) bool { return g.Batch.whole(in) }

// InputType implements graph.Mixed.
func (GatherRows) InputType(i int) tensor.DType { return [...]tensor.DType{1: tensor.Uint64}[i] }

// Shape implements graph.Op.
func (g GatherRows) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, 1); err != nil {
		return nil, err
	}
	if len(in[0]) == 0 {
		return nil, errors.New("data must have shape [N ...], got a scalar")
	}
	return append(tensor.Shape{g.Batch.Size}, in[0][1:]...), g.Batch.check(in[0][0])
}

// Lower implements graph.Op.
func (g GatherRows) Lower(l *graph.Lowering) {
	examples := l.Shapes[0][0]
	width := l.Shape.Elements() / g.Batch.Size
	run := graph.Pick(l, gatherRows[float32](g, examples, width), gatherRows[float64](g, examples, width))
	l.Emit("gather_rows", tensor.Threads(g.Batch.Size*width), tensor.Rows(g.Batch.Size, width, run), l.Out(), l.In(0), l.In(1),
		tensor.Int(examples), tensor.Int(g.Batch.Size), tensor.Int(width), tensor.Int(int(g.Batch.Order)))
}

func gatherRows[T float32 | float64](g GatherRows, examples, width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x, header := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[uint64](a, 2)
		g.Batch.forEach(header, examples, lo, hi, func(i, example int) {
			copy(y[i*width:(i+1)*width], x[example*width:])
		})
	}
}
