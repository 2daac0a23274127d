package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Moments is the mean of each channel of each image, and the mean of its squares:
//
//	y[b c]   = 1/(H W) sum over h w of x[b c h w]
//	y[b C+c] = 1/(H W) sum over h w of x[b c h w]^2
//
// x [B C H W] -> y [B 2C]. The sums are computed in float64. It has no gradient.
type Moments struct{}

// Name implements graph.Op.
func (Moments) Name() string { return "moments" }

// Shape implements graph.Op.
func (Moments) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4); err != nil {
		return nil, err
	}
	return tensor.Shape{in[0][0], 2 * in[0][1]}, nil
}

// Early implements graph.Early: the moments are computed while the images are in cache.
func (Moments) Early() {}

// Lower implements graph.Op.
func (Moments) Lower(l *graph.Lowering) {
	x := l.Shapes[0]
	images, channels, width := x[0], x[1], x[2]*x[3]
	run := graph.Pick(l, channelMoments[float32], channelMoments[float64])(channels, width)
	host := tensor.RowTiles(images, 1, channels*width, run)
	host.RowTile.Owns = func(int, *tensor.Buffer) bool { return true }
	l.Emit("moments_fwd", tensor.Warps(images*channels), host,
		l.Out(), l.In(0), tensor.Int(images*channels), tensor.Int(channels), tensor.Int(width))
}

// channelMoments computes the moments of images [lo, hi).
func channelMoments[T float32 | float64](channels, width int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		var zeros, totals [kernel.PlanesTogether]float64
		for image := lo; image < hi; image++ {
			for first := 0; first < channels; first += kernel.PlanesTogether {
				n := min(kernel.PlanesTogether, channels-first)
				planes := x[(image*channels+first)*width:][:n*width]
				to := y[image*2*channels+first:]
				kernel.WideSumPlanes(totals[:n], planes)
				for i, total := range totals[:n] {
					to[i] = T(total / float64(width))
				}
				kernel.WideSquaresPlanes(totals[:n], planes, zeros[:n])
				for i, total := range totals[:n] {
					to[channels+i] = T(total / float64(width))
				}
			}
		}
	}
}
