package optest

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// matrix is a product's sizes: [rows inner] times [inner columns].
type matrix struct {
	rows, inner, columns int
	product              op.MatMul
}

func (m matrix) String() string {
	return fmt.Sprintf("%dx%dx%d, transposed %v %v", m.rows, m.inner, m.columns, m.product.TransposeA, m.product.TransposeB)
}

func (m matrix) inputs() []Input {
	a, b := []int{m.rows, m.inner}, []int{m.inner, m.columns}
	if m.product.TransposeA {
		a[0], a[1] = a[1], a[0]
	}
	if m.product.TransposeB {
		b[0], b[1] = b[1], b[0]
	}
	return []Input{Float(Normal, a...), Float(Normal, b...)}
}

// naive computes the product by its definition.
func (m matrix) naive(in [][]float64) []float64 {
	a, b := in[0], in[1]
	c := make([]float64, m.rows*m.columns)
	for i := range m.rows {
		for j := range m.columns {
			for k := range m.inner {
				left, right := i*m.inner+k, k*m.columns+j
				if m.product.TransposeA {
					left = k*m.rows + i
				}
				if m.product.TransposeB {
					right = j*m.inner + k
				}
				c[i*m.columns+j] += a[left] * b[right]
			}
		}
	}
	return c
}

func matrixCases() []Case {
	var cases []Case
	for _, size := range [][3]int{{1, 1, 1}, {31, 33, 17}, {33, 257, 31}, {257, 3, 33}, {1, 257, 31}, {31, 31, 1}} {
		for transposed := range 4 {
			m := matrix{size[0], size[1], size[2], op.MatMul{TransposeA: transposed&1 != 0, TransposeB: transposed&2 != 0}}
			cases = append(cases, Case{
				Name: "matmul " + m.String(), Op: m.product, Inputs: m.inputs(), Naive: m.naive, Terms: m.inner, Kernel: "matmul_fwd",
			})
		}
	}
	linear := op.MatMul{TransposeB: true}
	cases = append(cases,
		matrix{33, 31, 10, linear}.fused("matmul_bias_fwd", true, false),
		matrix{31, 17, 33, linear}.fused("matmul_fwd", false, true),
		matrix{17, 33, 35, op.MatMul{}}.fused("matmul_bias_fwd", true, true),
		matrix{17, 33, 35, op.MatMul{}}.masked(), matrix{9, 1011, 7, linear}.masked())
	for _, m := range []matrix{{100, 320, 50, linear}, {64, 784, 256, linear}} {
		c := m.fused("matmul_bias_fwd", true, true)
		c.Speed, c.Flops = true, 2*float64(m.rows*m.inner*m.columns)
		cases = append(cases, c)
	}
	return cases
}

// masked returns a row of the gradient of a product by its first factor. That factor is the output
// of a ReLU, whose gradient the compiler fuses into the product.
func (m matrix) masked() Case {
	return Case{
		Name: "matmul, relu gradient " + m.String(), Inputs: append(m.inputs(), Float(Normal, m.rows, m.columns)), Terms: m.inner, NoGradient: true,
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			y := b.Apply(op.MatMul{TransposeB: !m.product.TransposeB}, b.Apply(op.ReLU{}, in[2]), in[1])
			return b.Gradients(b.Apply(op.Sum{}, b.Apply(op.Multiply{}, y, in[0])), in[2])[0]
		},
		Naive: func(in [][]float64) []float64 {
			c := m.naive(in)
			for i, x := range in[2] {
				if !(x > 0) {
					c[i] = 0
				}
			}
			return c
		},
	}
}

// fused returns a row of a product with a bias or a ReLU, which the compiler fuses into it.
func (m matrix) fused(kernel string, bias, relu bool) Case {
	c := Case{
		Name: "matmul", Kernel: kernel, Inputs: m.inputs(), Terms: m.inner + 1,
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			y := b.Apply(m.product, in[0], in[1])
			if bias {
				y = b.Apply(op.BiasAdd{}, y, in[2])
			}
			if relu {
				y = b.Apply(op.ReLU{}, y)
			}
			return y
		},
		Naive: func(in [][]float64) []float64 {
			y := m.naive(in)
			if bias {
				y = naiveBias(y, in[2], 1)
			}
			if relu {
				y = naiveReLU(y)
			}
			return y
		},
	}
	if bias {
		c.Name += ", bias"
		c.Inputs = append(c.Inputs, Float(Normal, m.columns))
	}
	if relu {
		c.Name += ", relu"
	}
	c.Name += " " + m.String()
	return c
}
