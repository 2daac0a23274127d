package array

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// CumulativeSum is the running sum along an axis: x [...] -> y of the same shape, y[... i ...] =
// sum over j <= i of x[... j ...], or over j >= i if Reverse. The sums are computed in float64.
type CumulativeSum struct {
	Axis    int
	Reverse bool
}

// Name implements graph.Op.
func (CumulativeSum) Name() string { return "cumulative sum" }

// Shape implements graph.Op.
func (c CumulativeSum) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkAxis(in, c.Axis); err != nil {
		return nil, err
	}
	return in[0], nil
}

// Lower implements graph.Op.
func (c CumulativeSum) Lower(l *graph.Lowering) {
	length, inner := l.Shape[c.Axis], tensor.Shape(l.Shape[c.Axis+1:]).Elements()
	lines := l.Shape.Elements() / length
	run := graph.Pick(l, cumulativeSum[float32], cumulativeSum[float64])(length, inner, c.Reverse)
	l.Emit("cumulative_sum_fwd", tensor.Threads(lines), tensor.Rows(lines, length, run),
		l.Out(), l.In(0), tensor.Int(lines), tensor.Int(length), tensor.Int(inner), tensor.Bool(c.Reverse))
}

// cumulativeSum computes lines lo to hi, each along the axis and summed in float64.
func cumulativeSum[T float32 | float64](length, inner int, reverse bool) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for line := lo; line < hi; line++ {
			at, stride := line/inner*length*inner+line%inner, inner
			if reverse {
				at, stride = at+(length-1)*inner, -inner
			}
			total := 0.0
			for range length {
				total += float64(x[at])
				y[at] = T(total)
				at += stride
			}
		}
	}
}

// Gradients implements graph.Differentiable.
func (c CumulativeSum) Gradients(b *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(CumulativeSum{Axis: c.Axis, Reverse: !c.Reverse}, dout)}
}
