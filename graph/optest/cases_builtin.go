package optest

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// builtinCases tests a single element, a graph that computes partly in the other float, and graphs
// whose gradients need the sum that differentiation inserts where a node has several consumers.
func builtinCases() []Case {
	m := matrix{33, 33, 33, op.MatMul{}}
	return []Case{{
		Name: "element 32 of [3 31]", Op: array.Element{Index: 32}, Inputs: []Input{Float(Normal, 3, 31)}, Terms: 1,
		Naive: func(in [][]float64) []float64 { return in[0][32:33] },
	}, {
		Name: "element of a scalar", Op: array.Element{}, Inputs: []Input{Float(Normal)}, Terms: 1,
		Naive: func(in [][]float64) []float64 { return in[0] },
	}, {
		Name: "the other float in between", Terms: 1, Inputs: []Input{Float(Normal, 7, 151)},
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			end := b.Within(map[tensor.DType]tensor.DType{tensor.Float32: tensor.Float64, tensor.Float64: tensor.Float32}[b.DType()])
			half := b.Apply(op.Scale{Factor: 0.5}, b.Cast(in[0]))
			end()
			return b.Cast(half)
		},
		Naive:    func(in [][]float64) []float64 { return halfInFloat32(in[0]) },
		Gradient: func(_ [][]float64, dout []float64) [][]float64 { return [][]float64{halfInFloat32(dout)} },
	}, {
		Name: "a matrix times itself", Terms: 33, Inputs: m.inputs()[:1],
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node { return b.Apply(m.product, in[0], in[0]) },
		Naive: func(in [][]float64) []float64 { return m.naive([][]float64{in[0], in[0]}) },
	}, {
		Name: "four consumers", Terms: 33 * 33, Inputs: m.inputs(),
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			x := b.Apply(op.ReLU{}, b.Apply(m.product, in[0], in[1]))
			return b.Apply(m.product, b.Apply(m.product, x, x), b.Apply(m.product, x, x))
		},
		Naive: func(in [][]float64) []float64 {
			x := naiveReLU(m.naive(in))
			square := m.naive([][]float64{x, x})
			return m.naive([][]float64{square, square})
		},
	}}
}

func halfInFloat32(values []float64) []float64 {
	halves := make([]float64, len(values))
	for i, v := range values {
		halves[i] = float64(float32(v) / 2)
	}
	return halves
}
