package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Threshold is the thresholded linear unit that goes with filter response normalisation, y[b c ...] = max(x[b c ...], tau[c]):
// x [B C ...], tau [C] -> y [B C ...]. Where both are equal the gradient goes to tau. Source: Singh and Krishnan (2020), equation 4.
type Threshold struct{}

// Name implements graph.Op.
func (Threshold) Name() string { return "threshold" }

// Shape implements graph.Op.
func (Threshold) Shape(in []tensor.Shape) (tensor.Shape, error) { return BiasAdd{}.Shape(in) }

// Lower implements graph.Op.
func (Threshold) Lower(l *graph.Lowering) {
	rows, width := planes(l.Shape)
	run := graph.Pick(l, threshold[float32], threshold[float64])(width)
	l.Emit("threshold_fwd", rows*width, tensor.Rows(rows, width, run),
		l.Out(), l.In(0), l.In(1), tensor.Int(rows*width), tensor.Int(l.Shape[1]), tensor.Int(width))
}

func threshold[T float32 | float64](width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x, tau := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		for row := lo; row < hi; row++ {
			bound := tau[row%len(tau)]
			from, to := x[row*width:(row+1)*width], y[row*width:(row+1)*width]
			for i, v := range from {
				to[i] = max(v, bound)
			}
		}
	}
}

// Gradients implements graph.Differentiable.
func (Threshold) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	dx := b.Apply(thresholdBackward{}, dout, in[0], in[1])
	return []*graph.Node{dx, b.Apply(biasBackward{}, b.Apply(Subtract{}, dout, dx))}
}

// thresholdBackward is dx = dout where x > tau, else 0: dout [B C ...], x [B C ...], tau [C] -> dx [B C ...]. What it leaves out is tau's.
type thresholdBackward struct{}

func (thresholdBackward) Name() string { return "threshold gradient" }

func (thresholdBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 3 {
		return nil, errors.Errorf("got %d inputs, wants 3", len(in))
	}
	if err := wantEqual(in[0], in[1]); err != nil {
		return nil, err
	}
	return BiasAdd{}.Shape(in[1:])
}

func (thresholdBackward) Lower(l *graph.Lowering) {
	rows, width := planes(l.Shape)
	run := graph.Pick(l, thresholdGradient[float32], thresholdGradient[float64])(width)
	l.Emit("threshold_bwd", rows*width, tensor.Rows(rows, width, run),
		l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(rows*width), tensor.Int(l.Shape[1]), tensor.Int(width))
}

func thresholdGradient[T float32 | float64](width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, x, tau := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Slice[T](a, 3)
		for row := lo; row < hi; row++ {
			bound := tau[row%len(tau)]
			for i := row * width; i < (row+1)*width; i++ {
				gradient := T(0)
				if x[i] > bound {
					gradient = dout[i]
				}
				dx[i] = gradient
			}
		}
	}
}
