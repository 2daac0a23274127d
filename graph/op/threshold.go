package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Threshold is the thresholded linear unit that follows filter response normalisation: x [B C ...],
// tau [C] -> y [B C ...], y[b c ...] = max(x[b c ...], tau[c]). Where both are equal the gradient
// goes to tau. FilterResponseNorm fuses it. Source: Singh and Krishnan (2020), equation 4.
type Threshold struct{}

// Name implements graph.Op.
func (Threshold) Name() string { return "threshold" }

// Shape implements graph.Op.
func (Threshold) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, 1); err != nil {
		return nil, err
	}
	if len(in[0]) < 2 || in[0][1] != in[1][0] {
		return nil, errors.Errorf("tau must have one element for each channel (axis 1) of an input of shape %v, got %d", in[0], in[1][0])
	}
	return in[0], nil
}

// Lower implements graph.Op.
func (Threshold) Lower(l *graph.Lowering) {
	rows, width := planes(l.Shape)
	run := graph.Pick(l, threshold[float32], threshold[float64])(width)
	l.Emit("threshold_fwd", tensor.Vec4(rows*width), tensor.RowTiles(rows, l.Shape[1], width, run),
		l.Out(), l.In(0), l.In(1), tensor.Int(rows*width), tensor.Int(l.Shape[1]), tensor.Int(width))
}

func threshold[T float32 | float64](width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x, tau := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		var bounds [kernel.PlanesTogether]T
		for row := lo; row < hi; row += len(bounds) {
			end := min(row+len(bounds), hi)
			some := ofChannels(bounds[:end-row], tau, row)
			kernel.RaisePlanes(y[row*width:end*width], x[row*width:end*width], some)
		}
	}
}

// ofChannels fills planes, the first of which is plane from, with the numbers of their channels.
func ofChannels[T float32 | float64](planes, channels []T, from int) []T {
	for i := range planes {
		planes[i] = channels[(from+i)%len(channels)]
	}
	return planes
}

// Gradients implements graph.Differentiable. They need only y, so that the memory of x is free as
// soon as y is computed.
func (Threshold) Gradients(b *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	dx := b.Apply(thresholdBackward{}, dout, y, in[1])
	return []*graph.Node{dx, b.Apply(thresholdBackwardBound{}, dout, dx)}
}

// thresholdBackward is the gradient by x, dx = dout where y > tau, else 0: dout [B C ...], y [B C
// ...], tau [C] -> dx [B C ...].
type thresholdBackward struct{}

func (thresholdBackward) Name() string { return "threshold gradient" }

func (thresholdBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 3 {
		return nil, errors.Errorf("there must be 3 inputs, got %d", len(in))
	}
	if err := checkEqual(in[0], in[1]); err != nil {
		return nil, err
	}
	return Threshold{}.Shape(in[1:])
}

func (thresholdBackward) Lower(l *graph.Lowering) {
	rows, width := planes(l.Shape)
	run := graph.Pick(l, thresholdGradient[float32], thresholdGradient[float64])(width)
	l.Emit("threshold_bwd", tensor.Vec4(rows*width), tensor.RowTiles(rows, l.Shape[1], width, run),
		l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(rows*width), tensor.Int(l.Shape[1]), tensor.Int(width))
}

func thresholdGradient[T float32 | float64](width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, y, tau := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Slice[T](a, 3)
		var bounds [kernel.PlanesTogether]T
		for row := lo; row < hi; row += len(bounds) {
			end := min(row+len(bounds), hi)
			from, to := row*width, end*width
			kernel.PassAbovePlanes(dx[from:to], dout[from:to], y[from:to], ofChannels(bounds[:end-row], tau, row))
		}
	}
}

// thresholdBackwardBound is the gradient by tau, the sum of dout - dx over all axes except the
// channels': dout [B C ...], dx [B C ...] -> dtau [C].
type thresholdBackwardBound struct{}

func (thresholdBackwardBound) Name() string { return "threshold gradient of bound" }

func (thresholdBackwardBound) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, -1); err != nil {
		return nil, err
	}
	if err := checkEqual(in[0], in[1]); err != nil {
		return nil, err
	}
	return biasBackward{}.Shape(in[:1])
}

func (thresholdBackwardBound) Lower(l *graph.Lowering) {
	rows, width := planes(l.Shapes[0])
	channels := l.Shape[0]
	host := planeSums(l, rows, width, graph.Pick(l, thresholdSum[float32], thresholdSum[float64]))
	emitSums(l, "threshold_bwd_bound", "threshold_bwd_bound", channelSums(rows, channels, width), host,
		l.Out(), l.In(0), l.In(1), tensor.Int(rows*width), tensor.Int(channels), tensor.Int(width))
}

func thresholdSum[T float32 | float64](a *tensor.Args, totals []float64, lo, hi int) {
	kernel.WideDifferencePlanes(totals, tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi])
}
