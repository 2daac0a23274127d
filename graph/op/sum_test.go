package op

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// naiveSum adds up element by element, finding each one's place in the output from its indices.
func naiveSum(shape tensor.Shape, summed func(axis int) bool, x []float64) []float64 {
	n := 1
	for axis, extent := range shape {
		if !summed(axis) {
			n *= extent
		}
	}
	y := make([]float64, n)
	for i, v := range x {
		rest, stride, at := i, 1, 0
		for axis := len(shape) - 1; axis >= 0; axis-- {
			index := rest % shape[axis]
			rest /= shape[axis]
			if !summed(axis) {
				at += index * stride
				stride *= shape[axis]
			}
		}
		y[at] += v
	}
	return y
}

func TestSumAndMean(t *testing.T) {
	for _, c := range []struct {
		shape tensor.Shape
		axes  []int
	}{
		{tensor.Shape{}, nil},
		{tensor.Shape{1}, nil},
		{tensor.Shape{1, 1}, []int{1}},
		{tensor.Shape{257}, nil},
		{tensor.Shape{257}, []int{0}},
		{tensor.Shape{33, 1031}, nil},
		{tensor.Shape{33, 1031}, []int{0}},
		{tensor.Shape{33, 1031}, []int{1}},
		{tensor.Shape{4099, 3}, []int{0}},
		{tensor.Shape{4099, 3}, []int{1}},
		{tensor.Shape{3, 20011}, []int{1}},
		{tensor.Shape{20011, 3}, []int{0}},
		{tensor.Shape{5, 7, 3, 9}, []int{2, 3}},
		{tensor.Shape{5, 7, 3, 9}, []int{0, 2, 3}},
		{tensor.Shape{5, 7, 3, 9}, []int{0, 3}},
		{tensor.Shape{5, 1, 3, 9}, []int{0, 2}},
		{tensor.Shape{31, 3, 33, 5}, []int{0, 2}},
		{tensor.Shape{3, 2, 4, 3, 2, 5}, []int{0, 2, 4}},
		{tensor.Shape{3, 2, 4, 3, 2, 5}, []int{1, 3, 5}},
	} {
		summed := func(axis int) bool {
			if slices.Contains(c.axes, axis) {
				return true
			}
			return len(c.axes) == 0
		}
		t.Run(fmt.Sprint(c.shape, c.axes), func(t *testing.T) {
			sum := trial{op: Sum{AxesOf(c.axes...)}, shapes: []tensor.Shape{c.shape}}
			sum.want = func(in [][]float64) []float64 { return naiveSum(c.shape, summed, in[0]) }
			sum.run(t)
			mean := trial{op: Mean{AxesOf(c.axes...)}, shapes: []tensor.Shape{c.shape}}
			mean.want = func(in [][]float64) []float64 {
				y := naiveSum(c.shape, summed, in[0])
				for i := range y {
					y[i] *= float64(len(y)) / float64(len(in[0]))
				}
				return y
			}
			mean.run(t)
		})
	}
	refuse(t, Sum{AxesOf(2)}, tensor.Shape{3, 4})
	refuse(t, Sum{AxesOf(-1)}, tensor.Shape{3, 4})
	refuse(t, Mean{AxesOf(99)}, tensor.Shape{3, 4})
	refuse(t, Mean{}, tensor.Shape{1, 1, 1, 1, 1, 1, 2})
	refuse(t, Sum{}, tensor.Shape{3}, tensor.Shape{3})
}
