package optest

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

func naiveReLU(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		if v > 0 {
			y[i] = v
		}
	}
	return y
}

// naiveBias adds bias to channels of width elements.
func naiveBias(x, bias []float64, width int) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v + bias[i/width%len(bias)]
	}
	return y
}

func pointwiseCases() []Case {
	relu := func(in [][]float64) []float64 { return naiveReLU(in[0]) }
	cases := []Case{{
		Name: "relu at 0", Op: op.ReLU{}, Inputs: []Input{Float(Ties, 257)}, Naive: relu, Terms: 1,
		Gradient: func(in [][]float64, dout []float64) [][]float64 {
			dx := make([]float64, len(dout))
			for i, v := range in[0] {
				if v > 0 {
					dx[i] = dout[i]
				}
			}
			return [][]float64{dx}
		},
	}}
	for _, shape := range []tensor.Shape{{}, {1}, {31}, {3, 5, 7, 11}, {9001}} {
		cases = append(cases, Case{
			Name: fmt.Sprint("relu ", shape), Op: op.ReLU{}, Inputs: []Input{Float(Distinct, shape...)}, Naive: relu, Terms: 1,
		})
	}
	for _, shape := range []tensor.Shape{{1, 1}, {31, 33}, {300, 31}, {2, 257, 3}, {3, 5, 7, 9}, {100, 10, 24, 24}} {
		width := shape.Elements() / (shape[0] * shape[1])
		cases = append(cases, Case{
			Name: fmt.Sprint("bias ", shape), Op: op.BiasAdd{}, Terms: 1,
			Inputs: []Input{Float(Normal, shape...), Float(Normal, shape[1])},
			Naive:  func(in [][]float64) []float64 { return naiveBias(in[0], in[1], width) },
			Speed:  shape[0] == 100, Flops: float64(shape.Elements()),
		})
	}
	same := func(in [][]float64) []float64 { return in[0] }
	return append(cases,
		Case{Name: "view [3 4 5] as [3 20]", Op: op.ViewAs(3, 20), Inputs: []Input{Float(Normal, 3, 4, 5)}, Naive: same, Terms: 1},
		Case{Name: "view [1] as a scalar", Op: op.ViewAs(), Inputs: []Input{Float(Normal, 1)}, Naive: same, Terms: 1},
		Case{Name: "view [31] as six axes", Op: op.ViewAs(1, 1, 31, 1, 1, 1), Inputs: []Input{Float(Normal, 31)}, Naive: same, Terms: 1})
}
