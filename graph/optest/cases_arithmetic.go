package optest

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// place returns the index, in a tensor of the given shape, of the element that broadcasts to
// element i of output or, for a sum, to which element i of output contributes.
func place(i int, output, shape tensor.Shape) int {
	at, stride := 0, 1
	for axis := len(output) - 1; axis >= 0; axis-- {
		index := i % output[axis]
		i /= output[axis]
		if own := axis - len(output) + len(shape); own >= 0 {
			at += index % shape[own] * stride
			stride *= shape[own]
		}
	}
	return at
}

func arithmeticCases() []Case {
	var cases []Case
	for _, s := range []struct{ a, b, y tensor.Shape }{
		{tensor.Shape{}, tensor.Shape{}, tensor.Shape{}},
		{tensor.Shape{1, 1}, tensor.Shape{1}, tensor.Shape{1, 1}},
		{tensor.Shape{9001}, tensor.Shape{9001}, tensor.Shape{9001}},
		{tensor.Shape{}, tensor.Shape{31, 33}, tensor.Shape{31, 33}},
		{tensor.Shape{33, 257}, tensor.Shape{257}, tensor.Shape{33, 257}},
		{tensor.Shape{31, 1}, tensor.Shape{31, 257}, tensor.Shape{31, 257}},
		{tensor.Shape{31, 1}, tensor.Shape{1, 33}, tensor.Shape{31, 33}},
		{tensor.Shape{5, 7, 3, 9}, tensor.Shape{7, 1, 1}, tensor.Shape{5, 7, 3, 9}},
		{tensor.Shape{3, 1, 2, 1, 3, 1}, tensor.Shape{1, 2, 1, 4, 1, 5}, tensor.Shape{3, 2, 2, 4, 3, 5}},
	} {
		for _, f := range []struct {
			op    graph.Op
			value func(a, b float64) float64
		}{
			{op.Add{}, func(a, b float64) float64 { return a + b }},
			{op.Subtract{}, func(a, b float64) float64 { return a - b }},
			{op.Multiply{}, func(a, b float64) float64 { return a * b }},
			{op.Divide{}, func(a, b float64) float64 { return a / b }},
		} {
			cases = append(cases, Case{
				Name: fmt.Sprint(f.op.Name(), " ", s.a, " ", s.b), Op: f.op, Terms: 1,
				Inputs: []Input{Float(Normal, s.a...), Float(Positive, s.b...)},
				Naive: func(in [][]float64) []float64 {
					y := make([]float64, s.y.Elements())
					for i := range y {
						y[i] = f.value(in[0][place(i, s.y, s.a)], in[1][place(i, s.y, s.b)])
					}
					return y
				},
			})
		}
	}
	for kernel, shapes := range map[string][2]tensor.Shape{
		"add_relu_fwd": {{9001}, {9001}}, "add_relu_broadcast_fwd": {{33, 257}, {257}},
	} {
		cases = append(cases, raisedSum(kernel, shapes))
	}
	return append(cases, Case{
		Name: "scale [9001]", Op: op.Scale{Factor: -1.5, Offset: 0.25}, Terms: 2, Inputs: []Input{Float(Normal, 9001)},
		Naive: func(in [][]float64) []float64 {
			y := make([]float64, len(in[0]))
			for i, v := range in[0] {
				y[i] = -1.5*v + 0.25
			}
			return y
		},
	})
}

// naiveMoments returns the mean of each channel of images of a shape [B C H W], and of its squares.
func naiveMoments(x []float64, shape tensor.Shape) []float64 {
	channels, width := shape[1], shape[2]*shape[3]
	y := make([]float64, 2*shape[0]*channels)
	for i, v := range x {
		image, channel := i/(channels*width), i/width%channels
		y[2*image*channels+channel] += v / float64(width)
		y[(2*image+1)*channels+channel] += v * v / float64(width)
	}
	return y
}

func sumCases() []Case {
	var cases []Case
	for _, s := range []struct {
		shape tensor.Shape
		axes  []int
		ones  tensor.Shape // the shape with extent 1 on the axes
	}{
		{tensor.Shape{}, nil, tensor.Shape{}},
		{tensor.Shape{1}, []int{0}, tensor.Shape{1}},
		{tensor.Shape{257}, nil, tensor.Shape{1}},
		{tensor.Shape{20011}, nil, tensor.Shape{1}},
		{tensor.Shape{31, 33}, []int{1}, tensor.Shape{31, 1}},
		{tensor.Shape{31, 1031}, []int{0}, tensor.Shape{1, 1031}},
		{tensor.Shape{4099, 3}, []int{0}, tensor.Shape{1, 3}},
		{tensor.Shape{3, 9001}, []int{1}, tensor.Shape{3, 1}},
		{tensor.Shape{5, 7, 3, 9}, []int{0, 2, 3}, tensor.Shape{1, 7, 1, 1}},
		{tensor.Shape{5, 7, 3, 9}, []int{2, 3}, tensor.Shape{5, 7, 1, 1}},
		{tensor.Shape{9, 29, 7, 6}, []int{2, 3}, tensor.Shape{9, 29, 1, 1}}, // many short sums
		{tensor.Shape{3, 2, 4, 3, 2, 5}, []int{0, 2, 4}, tensor.Shape{1, 2, 1, 3, 1, 5}},
		{tensor.Shape{3, 2, 4, 3, 2, 5}, []int{1, 3, 5}, tensor.Shape{3, 1, 4, 1, 2, 1}},
	} {
		terms := s.shape.Elements() / s.ones.Elements()
		add := func(in [][]float64) []float64 {
			y := make([]float64, s.ones.Elements())
			for i, v := range in[0] {
				y[place(i, s.shape, s.ones)] += v
			}
			return y
		}
		mean := func(in [][]float64) []float64 {
			y := add(in)
			for i := range y {
				y[i] /= float64(terms)
			}
			return y
		}
		inputs := []Input{Float(Normal, s.shape...)}
		cases = append(cases,
			Case{Name: fmt.Sprint("sum ", s.shape, " over ", s.axes), Op: op.Sum{Axes: op.AxesOf(s.axes...)}, Inputs: inputs, Naive: add, Terms: terms},
			Case{Name: fmt.Sprint("mean ", s.shape, " over ", s.axes), Op: op.Mean{Axes: op.AxesOf(s.axes...)}, Inputs: inputs, Naive: mean, Terms: terms})
	}
	for _, shape := range []tensor.Shape{{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 33, 2, 9}, {2, 5, 31, 33}} {
		cases = append(cases, Case{
			Name: fmt.Sprint("moments ", shape), Op: op.Moments{}, NoGradient: true, Inputs: []Input{Float(Normal, shape...)}, Terms: shape[2] * shape[3],
			Naive: func(in [][]float64) []float64 { return naiveMoments(in[0], shape) },
		})
	}
	return cases
}

// raisedSum is a row of max(0, a + b), which compiles to one launch. The second shape must be a
// suffix of the first.
func raisedSum(kernel string, shapes [2]tensor.Shape) Case {
	sums := func(in [][]float64) []float64 {
		y := make([]float64, len(in[0]))
		for i := range y {
			y[i] = in[0][i] + in[1][i%len(in[1])]
		}
		return y
	}
	return Case{
		Name: fmt.Sprint("relu of add ", shapes[0], " ", shapes[1]), Kernel: kernel, Terms: shapes[0].Elements() / shapes[1].Elements(),
		Inputs: []Input{Float(Normal, shapes[0]...), Float(Normal, shapes[1]...)},
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return b.Apply(op.ReLU{}, b.Apply(op.Add{}, in...))
		},
		Naive: func(in [][]float64) []float64 { return naiveReLU(sums(in)) },
		Gradient: func(in [][]float64, dout []float64) [][]float64 {
			da, db := make([]float64, len(in[0])), make([]float64, len(in[1]))
			for i, y := range sums(in) {
				if y > 0 {
					da[i] = dout[i]
					db[i%len(db)] += dout[i]
				}
			}
			return [][]float64{da, db}
		},
	}
}
