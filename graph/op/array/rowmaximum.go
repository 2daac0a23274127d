package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// RowMaximum is y[b] = max over k of x[b k]: x [B K] -> y [B]. Its gradient goes to every element
// that equals the maximum, as Gorgonia's does.
type RowMaximum struct{}

// Name implements graph.Op.
func (RowMaximum) Name() string { return "row maximum" }

// Shape implements graph.Op.
func (RowMaximum) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkInputs(in, 1); err != nil {
		return nil, err
	}
	if len(in[0]) != 2 {
		return nil, errors.Errorf("input must have 2 axes, got shape %v", in[0])
	}
	return tensor.Shape{in[0][0]}, nil
}

// Lower implements graph.Op.
func (RowMaximum) Lower(l *graph.Lowering) {
	rows, width := l.Shapes[0][0], l.Shapes[0][1]
	run := graph.Pick(l, rowMaximum[float32](width), rowMaximum[float64](width))
	l.Emit("row_maximum_fwd", tensor.Warps(rows), tensor.Rows(rows, width, run), l.Out(), l.In(0), tensor.Int(rows), tensor.Int(width))
}

// rowMaximum computes rows lo to hi. The maximum of a row with a NaN is NaN.
func rowMaximum[T float32 | float64](width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for row := lo; row < hi; row++ {
			largest := x[row*width]
			for _, v := range x[row*width:][:width] {
				largest = max(largest, v)
			}
			y[row] = largest
		}
	}
}

// Gradients implements graph.Differentiable.
func (RowMaximum) Gradients(b *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	// y and dout as columns are broadcast over the elements of a row.
	column := op.ViewAs(graph.ShapeOf(y)[0], 1)
	at := b.Apply(op.Compare{Equal: true}, in[0], b.Apply(column, y))
	return []*graph.Node{b.Apply(op.Multiply{}, at, b.Apply(column, dout))}
}
