package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Sum is the sum over Axes, which the output does not have: x [...] -> y, y[kept axes] = sum over
// Axes of x. The zero Sum is over all axes, with a scalar output. The sums are computed in float64,
// in an order that depends only on the shape.
type Sum struct {
	Axes Axes
}

// Name implements graph.Op.
func (Sum) Name() string { return "sum" }

// Shape implements graph.Op.
func (s Sum) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1); err != nil {
		return nil, err
	}
	return s.Axes.remaining(in[0])
}

// Lower implements graph.Op.
func (s Sum) Lower(l *graph.Lowering) { lowerReduction(l, "sum_fwd", s.Axes, 1) }

// Gradients implements graph.Differentiable.
func (s Sum) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(sumBackward{ViewAs(graph.ShapeOf(in[0])...), s.Axes, false}, dout)}
}

// Mean is the mean over Axes, which the output does not have: x [...] -> y, y[kept axes] = 1/n sum
// over Axes of x, where n is the product of their extents. The zero Mean is over all axes, with a
// scalar output.
type Mean struct {
	Axes Axes
}

// Name implements graph.Op.
func (Mean) Name() string { return "mean" }

// Shape implements graph.Op.
func (m Mean) Shape(in []tensor.Shape) (tensor.Shape, error) { return Sum(m).Shape(in) }

// Lower implements graph.Op.
func (m Mean) Lower(l *graph.Lowering) {
	terms := l.Shapes[0].Elements() / l.Shape.Elements()
	lowerReduction(l, "mean_fwd", m.Axes, 1/float64(terms))
}

// Gradients implements graph.Differentiable.
func (m Mean) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(sumBackward{ViewAs(graph.ShapeOf(in[0])...), m.Axes, true}, dout)}
}

// sumBackward is the gradient of Sum and, with mean, of Mean: dout, divided by n for a mean, is
// broadcast over the axes that were summed over: dout [kept axes] -> dx of the shape of x.
type sumBackward struct {
	x    View
	axes Axes
	mean bool
}

func (sumBackward) Name() string { return "sum gradient" }

func (s sumBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1); err != nil {
		return nil, err
	}
	x := s.x.shape()
	kept, err := s.axes.remaining(x)
	if err != nil {
		return nil, err
	}
	return x, checkEqual(kept, in[0])
}

func (s sumBackward) Lower(l *graph.Lowering) {
	scale := 1.0
	if s.mean {
		scale = float64(l.Shapes[0].Elements()) / float64(l.Shape.Elements())
	}
	groups := collapse(l.Shape, func(axis int) int {
		if s.axes.has(axis) {
			return 0
		}
		return 1
	})
	runs := newRuns(groups, 1)
	n := l.Shape.Elements()
	run := graph.Pick(l, broadcastRuns[float32], broadcastRuns[float64])(runs, scale)
	arguments := append([]tensor.Argument{l.Out(), l.In(0), tensor.Int(n)}, runs.arguments()...)
	l.Emit("sum_bwd", tensor.Threads(n), tensor.Rows(n, 1, run), append(arguments, tensor.Float(l.DType, scale))...)
}

// broadcastRuns copies dout, scaled, to elements lo to hi of the gradient, in runs that read either
// one element of dout or successive ones.
func broadcastRuns[T float32 | float64](r runs, scale float64) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, scale := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), T(scale)
		for lo < hi {
			n, at := r.next(lo, hi)
			to := dx[lo : lo+n]
			lo += n
			if r.stride == 0 {
				v := dout[at] * scale
				for i := range to {
					to[i] = v
				}
				continue
			}
			for i, v := range dout[at:][:n] {
				to[i] = v * scale
			}
		}
	}
}
