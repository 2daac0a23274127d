package array

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Difference is the inverse of CumulativeSum along an axis: x [...] -> y of the same shape,
// y[... i ...] = x[... i ...] - x[... i-1 ...], and y[... 0 ...] = x[... 0 ...]. If Reverse,
// x[... i+1 ...] is subtracted, and the last element is kept. The density of a random walk is the
// product of the densities of its differences.
type Difference struct {
	Axis    int
	Reverse bool
}

// Name implements graph.Op.
func (Difference) Name() string { return "difference" }

// Shape implements graph.Op.
func (d Difference) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkAxis(in, d.Axis); err != nil {
		return nil, err
	}
	return in[0], nil
}

// Lower implements graph.Op.
func (d Difference) Lower(l *graph.Lowering) {
	n, length, inner := l.Shape.Elements(), l.Shape[d.Axis], tensor.Shape(l.Shape[d.Axis+1:]).Elements()
	run := graph.Pick(l, difference[float32], difference[float64])(length, inner, d.Reverse)
	l.Emit("difference_fwd", tensor.Threads(n), tensor.Rows(n, 1, run),
		l.Out(), l.In(0), tensor.Int(n), tensor.Int(length), tensor.Int(inner), tensor.Bool(d.Reverse))
}

// difference computes elements lo to hi. The first element along the axis, or the last in reverse,
// stays as it is, so that cumulativeSum is the inverse.
func difference[T float32 | float64](length, inner int, reverse bool) func(a *tensor.Args, lo, hi int) {
	end, neighbour := 0, -inner
	if reverse {
		end, neighbour = length-1, inner
	}
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for i := lo; i < hi; i++ {
			y[i] = x[i]
			if i/inner%length != end {
				y[i] -= x[i+neighbour]
			}
		}
	}
}

// Gradients implements graph.Differentiable.
func (d Difference) Gradients(b *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(Difference{Axis: d.Axis, Reverse: !d.Reverse}, dout)}
}
