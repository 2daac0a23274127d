package optest

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// convolution is a convolution's shape, in the letters of package op.
type convolution struct {
	batch, channels, height, width    int
	filters, filterHeight, filterWide int
	conv                              op.Conv2D
}

func convolve(b, c, h, w, k, r, s int, stride, padding, dilation [2]int) convolution {
	return convolution{b, c, h, w, k, r, s, op.Conv2D{Stride: stride, Padding: padding, Dilation: dilation}}
}

// trailing returns the convolution with more padding after the end of its axes.
func (v convolution) trailing(height, width int) convolution {
	v.conv.Trailing = [2]int{height, width}
	return v
}

func (v convolution) output() (height, width int) {
	extent := func(size, taps, i int) int {
		return (size+2*v.conv.Padding[i]+v.conv.Trailing[i]-v.conv.Dilation[i]*(taps-1)-1)/v.conv.Stride[i] + 1
	}
	return extent(v.height, v.filterHeight, 0), extent(v.width, v.filterWide, 1)
}

func (v convolution) String() string {
	text := fmt.Sprintf("%dx%dx%dx%d with %dx%dx%d stride %d padding %d dilation %d", v.batch, v.channels, v.height, v.width,
		v.filters, v.filterHeight, v.filterWide, v.conv.Stride, v.conv.Padding, v.conv.Dilation)
	if v.conv.Trailing != [2]int{} {
		text += fmt.Sprintf(" trailing %d", v.conv.Trailing)
	}
	return text
}

func (v convolution) inputs() []Input {
	return []Input{
		Float(Normal, v.batch, v.channels, v.height, v.width),
		Float(Normal, v.filters, v.channels, v.filterHeight, v.filterWide),
	}
}

func (v convolution) terms() int { return v.channels * v.filterHeight * v.filterWide }

// naive computes the convolution by its definition.
func (v convolution) naive(in [][]float64) []float64 {
	x, w := in[0], in[1]
	outHeight, outWidth := v.output()
	y := make([]float64, 0, v.batch*v.filters*outHeight*outWidth)
	for b := range v.batch {
		for k := range v.filters {
			for p := range outHeight {
				for q := range outWidth {
					y = append(y, v.element(x[b*v.channels*v.height*v.width:], w[k*v.terms():], p, q))
				}
			}
		}
	}
	return y
}

func (v convolution) element(image, filter []float64, p, q int) float64 {
	sum := 0.0
	for c := range v.channels {
		for r := range v.filterHeight {
			for s := range v.filterWide {
				i := p*v.conv.Stride[0] + r*v.conv.Dilation[0] - v.conv.Padding[0]
				j := q*v.conv.Stride[1] + s*v.conv.Dilation[1] - v.conv.Padding[1]
				if i >= 0 && i < v.height && j >= 0 && j < v.width {
					sum += image[(c*v.height+i)*v.width+j] * filter[(c*v.filterHeight+r)*v.filterWide+s]
				}
			}
		}
	}
	return sum
}

func (v convolution) flops() float64 {
	height, width := v.output()
	return 2 * float64(v.batch*v.filters*height*width*v.terms())
}

func convolutionCases() []Case {
	one, two, three := op.Square(1), op.Square(2), op.Square(3)
	none := op.Square(0)
	var cases []Case
	for _, v := range []convolution{
		convolve(1, 1, 1, 1, 1, 1, 1, one, none, one),
		convolve(2, 3, 7, 9, 5, 3, 3, one, one, one),
		convolve(3, 1, 28, 28, 10, 5, 5, one, two, one),
		convolve(2, 33, 5, 7, 31, 3, 3, one, none, one),
		convolve(1, 2, 31, 33, 17, 1, 1, one, none, one),
		convolve(2, 3, 10, 11, 4, 3, 3, two, one, one),
		convolve(2, 2, 11, 8, 3, 2, 4, three, [2]int{1, 2}, one),
		convolve(1, 2, 13, 12, 5, 3, 3, one, two, two),
		convolve(2, 2, 14, 15, 3, 3, 2, [2]int{2, 1}, [2]int{0, 3}, [2]int{3, 2}),
		convolve(2, 2, 9, 9, 3, 1, 1, three, none, one),         // the stride leaves elements out
		convolve(1, 3, 4, 5, 2, 4, 5, one, none, one),           // one window
		convolve(1, 1, 3, 257, 2, 3, 5, one, [2]int{1, 4}, one), // long rows, padding most of a filter
		convolve(2, 1, 2, 2, 3, 5, 5, one, op.Square(4), one),   // filter larger than the image
		convolve(5, 17, 13, 13, 19, 3, 3, two, none, op.Square(2)),
		convolve(2, 3, 12, 14, 5, 3, 3, two, none, one).trailing(1, 1),
		convolve(2, 3, 12, 9, 5, 5, 4, two, two, one).trailing(1, -2),
		convolve(8, 31, 7, 7, 32, 5, 5, one, two, one), // Winograd's algorithms, in these two
		convolve(12, 31, 8, 8, 32, 3, 3, one, one, one),
	} {
		cases = append(cases, Case{
			Name: "conv2d " + v.String(), Op: v.conv, Inputs: v.inputs(), Naive: v.naive, Terms: v.terms(),
			Kernel: "conv2d_fwd",
		})
	}
	for _, v := range []convolution{
		convolve(100, 1, 28, 28, 10, 5, 5, one, none, one),
		convolve(50, 10, 12, 12, 20, 5, 5, one, none, one),
		convolve(2, 64, 14, 14, 64, 5, 5, one, two, one),
	} {
		c := v.fused("conv2d_bias_fwd", true, true)
		c.Speed, c.Flops = true, v.flops()
		cases = append(cases, c)
	}
	v := convolve(3, 2, 9, 7, 5, 3, 3, one, one, one)
	return append(cases, v.fused("conv2d_bias_fwd", true, false), v.fused("conv2d_fwd", false, true), v.fused("conv2d_bias_fwd", true, true),
		v.clipped("conv2d_bias_fwd", true, 1.25), v.clipped("conv2d_fwd", false, 1.25),
		v.clipped("conv2d_bias_fwd", true, 6), v.clipped("conv2d_fwd", false, 6))
}

// fused returns a row of a convolution with a bias or a ReLU, which the compiler fuses into it.
func (v convolution) fused(kernel string, bias, relu bool) Case {
	c := Case{
		Name: "conv2d", Kernel: kernel, Inputs: v.inputs(), Terms: v.terms() + 1,
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			y := b.Apply(v.conv, in[0], in[1])
			if bias {
				y = b.Apply(op.BiasAdd{}, y, in[2])
			}
			if relu {
				y = b.Apply(op.ReLU{}, y)
			}
			return y
		},
		Naive: func(in [][]float64) []float64 {
			y := v.naive(in)
			height, width := v.output()
			if bias {
				y = naiveBias(y, in[2], height*width)
			}
			if relu {
				y = naiveReLU(y)
			}
			return y
		},
	}
	if bias {
		c.Name += ", bias"
		c.Inputs = append(c.Inputs, Float(Normal, v.filters))
	}
	if relu {
		c.Name += ", relu"
	}
	c.Name += " " + v.String()
	return c
}

// clipped returns a row of a convolution with a clip from 0, and a bias before it, which the
// compiler fuses into it. high is such that some outputs are above it.
func (v convolution) clipped(kernel string, bias bool, high float64) Case {
	c := v.fused(kernel, bias, false)
	c.Name += fmt.Sprintf(", clip at %v", high)
	build, naive := c.Build, c.Naive
	c.Build = func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return b.Apply(op.Clip{High: high}, build(b, in))
	}
	c.Naive = func(in [][]float64) []float64 {
		y := naive(in)
		for i, sum := range y {
			y[i] = min(max(sum, 0), high)
		}
		return y
	}
	return c
}
