package optest

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// pooling is a pool's shape.
type pooling struct {
	shape                   tensor.Shape // of x
	window, stride, padding [2]int
	trailing                [2]int
}

func (p pooling) String() string {
	text := fmt.Sprintf("%v window %d stride %d padding %d", p.shape, p.window, p.stride, p.padding)
	if p.trailing != [2]int{} {
		text += fmt.Sprintf(" trailing %d", p.trailing)
	}
	return text
}

// windows calls visit with the positions in x of each window's elements, and returns the results.
func (p pooling) windows(visit func(positions []int) float64) []float64 {
	height, width := p.shape[2], p.shape[3]
	outHeight := (height+2*p.padding[0]+p.trailing[0]-p.window[0])/p.stride[0] + 1
	outWidth := (width+2*p.padding[1]+p.trailing[1]-p.window[1])/p.stride[1] + 1
	var y []float64
	for plane := range p.shape[0] * p.shape[1] {
		for i := range outHeight {
			for j := range outWidth {
				var positions []int
				for r := range p.window[0] {
					for s := range p.window[1] {
						row, column := i*p.stride[0]-p.padding[0]+r, j*p.stride[1]-p.padding[1]+s
						if row >= 0 && row < height && column >= 0 && column < width {
							positions = append(positions, (plane*height+row)*width+column)
						}
					}
				}
				y = append(y, visit(positions))
			}
		}
	}
	return y
}

func (p pooling) naiveMax(in [][]float64) []float64 {
	return p.windows(func(positions []int) float64 {
		largest := math.Inf(-1)
		for _, at := range positions {
			largest = math.Max(largest, in[0][at])
		}
		return largest
	})
}

func (p pooling) naiveAverage(in [][]float64) []float64 {
	return p.windows(func(positions []int) float64 {
		sum := 0.0
		for _, at := range positions {
			sum += in[0][at]
		}
		return sum / float64(len(positions))
	})
}

// firstMaximum returns the gradient of max pooling by its definition, with ties.
func (p pooling) firstMaximum(in [][]float64, dout []float64) [][]float64 {
	x, dx, window := in[0], make([]float64, len(in[0])), 0
	p.windows(func(positions []int) float64 {
		first := positions[0]
		for _, at := range positions {
			if x[at] > x[first] {
				first = at
			}
		}
		dx[first] += dout[window]
		window++
		return 0
	})
	return [][]float64{dx}
}

func poolCases() []Case {
	one, two, three := op.Square(1), op.Square(2), op.Square(3)
	none := op.Square(0)
	var cases []Case
	for _, p := range []pooling{
		{tensor.Shape{1, 1, 1, 1}, one, one, none, none},
		{tensor.Shape{2, 3, 8, 6}, two, two, none, none},
		{tensor.Shape{2, 3, 7, 9}, two, two, none, none}, // the last row and column are left out
		{tensor.Shape{3, 5, 31, 5}, two, two, none, none},
		{tensor.Shape{2, 2, 9, 8}, three, two, one, none},
		{tensor.Shape{3, 2, 23, 17}, three, two, none, none},
		{tensor.Shape{2, 2, 10, 7}, [2]int{2, 3}, [2]int{3, 1}, [2]int{1, 2}, none},
		{tensor.Shape{1, 31, 5, 5}, three, one, none, none}, // windows overlap
		{tensor.Shape{1, 1, 5, 257}, [2]int{5, 33}, [2]int{1, 31}, none, none},
		{tensor.Shape{3, 4, 6, 6}, op.Square(6), op.Square(6), none, none},
		{tensor.Shape{100, 10, 24, 24}, two, two, none, none},
		{tensor.Shape{2, 3, 7, 10}, two, two, none, one},   // the last row is in windows of one row
		{tensor.Shape{2, 3, 9, 18}, three, two, none, one}, // the last column is in windows of two columns
		{tensor.Shape{2, 2, 8, 11}, three, two, one, [2]int{-1, 0}},
		{tensor.Shape{3, 1, 12, 23}, three, two, one, one},
		{tensor.Shape{1, 3, 6, 7}, three, one, one, [2]int{-1, 1}},
		{tensor.Shape{2, 3, 9, 17}, three, one, one, none}, // a window for each element
		{tensor.Shape{3, 2, 5, 4}, [2]int{5, 3}, one, [2]int{1, 1}, none},
		{tensor.Shape{2, 3, 2, 3}, [2]int{3, 5}, one, [2]int{1, 2}, none}, // no window is whole
	} {
		size := p.window[0] * p.window[1]
		largest := op.MaxPool2D{Window: p.window, Stride: p.stride, Padding: p.padding, Trailing: p.trailing}
		average := op.AveragePool2D{Window: p.window, Stride: p.stride, Padding: p.padding, Trailing: p.trailing}
		speed, flops := p.shape[0] == 100, float64(p.shape.Elements())
		if !speed {
			cases = append(cases, p.rectified(largest)...)
			cases = append(cases, Case{
				Name: "max pool " + p.String(), Op: largest, Inputs: []Input{Float(Distinct, p.shape...)}, Naive: p.naiveMax, Terms: size,
			})
		}
		cases = append(cases, Case{
			Name: "max pool of ties " + p.String(), Op: largest, Inputs: []Input{Float(Ties, p.shape...)}, Naive: p.naiveMax, Terms: size,
			Gradient: p.firstMaximum, Speed: speed, Flops: flops,
		}, Case{
			Name: "average pool " + p.String(), Op: average, Inputs: []Input{Float(Normal, p.shape...)}, Naive: p.naiveAverage, Terms: size,
			Speed: speed, Flops: flops,
		})
	}
	return cases
}

// rectified returns rows of the maximum with a ReLU after it, and before it, which the compiler
// fuses forward and backward.
func (p pooling) rectified(largest op.MaxPool2D) []Case {
	size := p.window[0] * p.window[1]
	naive := func(in [][]float64) []float64 {
		y := p.naiveMax(in)
		for i, v := range y {
			y[i] = math.Max(v, 0)
		}
		return y
	}
	gradient := func(in [][]float64, dout []float64) [][]float64 {
		dx := p.firstMaximum(in, dout)
		for i, v := range in[0] {
			if v <= 0 {
				dx[0][i] = 0
			}
		}
		return dx
	}
	x := []Input{Float(Ties, p.shape...)}
	return []Case{{
		Name: "relu of max pool " + p.String(), Kernel: "max_pool_relu_fwd", Inputs: x, Naive: naive, Terms: size, Gradient: gradient,
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return b.Apply(op.ReLU{}, b.Apply(largest, in...))
		},
	}, {
		Name: "max pool of relu " + p.String(), Inputs: x, Naive: naive, Terms: size, Gradient: gradient,
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return b.Apply(largest, b.Apply(op.ReLU{}, in...))
		},
	}}
}
