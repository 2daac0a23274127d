package cuda_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// looseness is the factor by which a precision's tolerance exceeds float32's. Half a unit in the
// last place is 2^-11 of a number in tf32 and 2^-8 in bf16. The relative error of a sum of n
// products whose factors are rounded is about as large, and the tolerance of float32 is 2^-21
// sqrt(n), with n at least 25 here. A sum of wrong products is off by its whole size, some 30 times
// the tolerance of bf16.
var looseness = map[cuda.Precision]float64{cuda.FP32: 1, cuda.TF32: 1 << 10, cuda.BF16: 1 << 13}

// TestProductTiles compares each tile of each precision with the naive loops: several tiles, with
// edges, all directions, both orientations of either operand, a bias.
func TestProductTiles(t *testing.T) {
	for precision, loosen := range looseness {
		t.Run(string(precision), func(t *testing.T) {
			device := cudatest.GPU(t, cuda.Options{Precision: precision})
			for _, size := range testenv.Some(t, 1, plan.TileSizes(precision, cuda.Capability(device))) {
				productTile(t, device, size, loosen, precision != cuda.FP32)
			}
		})
	}
	t.Run("before sm_80", func(t *testing.T) {
		onlyEmulated(t)
		driver := emulator.Open(t, emulator.Options{Capability: 70})
		device, err := cuda.Open(cuda.Options{Driver: driver.Path})
		if err != nil {
			t.Fatal(err)
		}
		defer device.Close()
		for _, size := range testenv.Some(t, 1, plan.TileSizes(cuda.FP32, 70)) {
			productTile(t, device, size, 1, true)
		}
	})
}

// TestSlicesSideBySide does the same with the tiles for two slices at once. The second slice is
// shorter.
func TestSlicesSideBySide(t *testing.T) {
	for _, precision := range []cuda.Precision{cuda.TF32, cuda.BF16} {
		for number, size := range testenv.Some(t, 1, plan.SlicedKTiles(precision)) {
			t.Run(fmt.Sprintf("%s/%dx%d", precision, size[0], size[1]), func(t *testing.T) {
				gpu := cudatest.GPU(t, cuda.Options{Precision: precision})
				if !cuda.FitsSlicedK(gpu, precision, number) {
					t.Skipf("%s has not the shared memory for it", gpu.Name())
				}
				plan.OnlySlicedK(t, precision, number)
				m, n := size[0]+3, size[1]+5
				rows := []optest.Case{
					product("matrices", m, 171, n, op.MatMul{}),
					product("matrices in chunks", size[0]-4, 172, size[1]-4, op.MatMul{TransposeA: true}),
					product("matrices in deep chunks", m, 172, n, op.MatMul{TransposeB: true}),
					product("the first in deep chunks", size[0]-4, 200, size[1]-4, op.MatMul{}),
					product("transposed matrices", size[0]-5, 171, n, op.MatMul{TransposeB: true}),
					masked("matrices with a mask", m, 130, n),
				}
				for i := range rows {
					rows[i].Loosen, rows[i].Reason = looseness[precision], "operands are rounded"
					rows[i].Speed, rows[i].Flops = true, 1
				}
				device := &catching{Device: gpu}
				optest.RunCases(t, device, rows)
				if want := fmt.Sprintf("matmul_%dx%dx2_%s", size[0], size[1], precision); !slices.Contains(cuda.Symbols(device.runner), want) {
					t.Errorf("there is no %s among %v", want, cuda.Symbols(device.runner))
				}
			})
		}
	}
}

// productTile tests a tile. If float32Alone is set, it leaves out float64 and finite differences.
func productTile(t *testing.T, device tensor.Device, size [2]int, loosen float64, float32Alone bool) {
	t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
		plan.OnlyTile(t, size[0], size[1])
		rows := productCases(size)
		for i := range rows {
			rows[i].Loosen, rows[i].Reason = loosen, "operands are rounded"
			rows[i].Speed, rows[i].Flops = float32Alone, 1
		}
		optest.RunCases(t, device, rows)
	})
}

// productCases returns products with a little more columns than a tile, and more rows if the tile
// has few. Tiles differ only in size, so only the smallest one gets all cases.
func productCases(size [2]int) []optest.Case {
	m, k, n := size[0]-5, 43, size[1]+5
	image := op.Conv2D{Stride: op.Square(1), Padding: op.Square(1), Dilation: op.Square(1)}
	one := op.Conv2D{Stride: op.Square(1), Dilation: op.Square(1)}
	strided := op.Conv2D{Stride: [2]int{2, 1}, Padding: [2]int{0, 2}, Dilation: [2]int{1, 2}}
	cases := []optest.Case{
		product("matrices", m, k, n, op.MatMul{}),
		product("matrices in chunks", size[0]-4, 44, size[1]-4, op.MatMul{TransposeA: true}),
		product("matrices in deep chunks", m, 44, n, op.MatMul{TransposeB: true}),
		masked("matrices with a mask", m, k, n),
		images("images", 1, 4, 7, 9, size[0]/2+3, 3, image),
		images("pixels", 3, size[1]/2+3, 4, 7, size[0]/2+3, 1, one), // in deep chunks by the filter
		images("pixels, channels in chunks", 2, 36, 2, 6, size[0]/2+4, 1, one),
	}
	if size[0] > 64 {
		return cases
	}
	cases = append(cases,
		product("transposed matrices", size[0]+3, k, n, op.MatMul{TransposeA: true, TransposeB: true}),
		images("images with strides", 3, 3, 11, 7, 29, 3, strided))
	if size[0] > 32 {
		return cases
	}
	return append(cases, product("matrices in slices", 7, 1011, 9, op.MatMul{TransposeB: true}), masked("matrices with a mask in slices", 7, 1011, 9))
}

// product returns the case of a product with a bias.
func product(name string, m, k, n int, matmul op.MatMul) optest.Case {
	a, b := []int{m, k}, []int{k, n}
	rowA, depthA, rowB, depthB := k, 1, 1, n // distances of neighbours in memory
	if matmul.TransposeA {
		a, rowA, depthA = []int{k, m}, 1, m
	}
	if matmul.TransposeB {
		b, rowB, depthB = []int{n, k}, k, 1
	}
	return optest.Case{
		Name: name, Kernel: "matmul_bias_fwd", Terms: k + 1,
		Inputs: []optest.Input{optest.Float(optest.Distinct, a...), optest.Float(optest.Normal, b...), optest.Float(optest.Normal, n)},
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return b.Apply(op.BiasAdd{}, b.Apply(matmul, in[0], in[1]), in[2])
		},
		Naive: func(in [][]float64) []float64 {
			c := make([]float64, m*n)
			for i := range m {
				for j := range n {
					c[i*n+j] = in[2][j]
					for d := range k {
						c[i*n+j] += in[0][i*rowA+d*depthA] * in[1][j*rowB+d*depthB]
					}
				}
			}
			return c
		},
	}
}

// masked returns the case of the gradient of a ReLU's input, where the ReLU's output is a product's
// first factor.
func masked(name string, m, k, n int) optest.Case {
	return optest.Case{
		Name: name, Terms: k, NoGradient: true,
		Inputs: []optest.Input{optest.Float(optest.Normal, m, k), optest.Float(optest.Normal, k, n), optest.Float(optest.Normal, m, n)},
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			y := b.Apply(op.MatMul{TransposeB: true}, b.Apply(op.ReLU{}, in[2]), in[1])
			return b.Gradients(b.Apply(op.Sum{}, b.Apply(op.Multiply{}, y, in[0])), in[2])[0]
		},
		Naive: func(in [][]float64) []float64 {
			c := make([]float64, m*n)
			for i := range c {
				for d := range k {
					if in[2][i] > 0 {
						c[i] += in[0][i/n*k+d] * in[1][d*n+i%n]
					}
				}
			}
			return c
		},
	}
}

// images returns the case of a convolution with bias.
func images(name string, batch, channels, height, width, filters, taps int, conv op.Conv2D) optest.Case {
	extent := func(size, axis int) int {
		return (size+2*conv.Padding[axis]-conv.Dilation[axis]*(taps-1)-1)/conv.Stride[axis] + 1
	}
	p, q := extent(height, 0), extent(width, 1)
	element := func(x, w []float64, i, j int) float64 {
		sum := 0.0
		for c := range channels {
			for r := range taps {
				for s := range taps {
					h, v := i*conv.Stride[0]+r*conv.Dilation[0]-conv.Padding[0], j*conv.Stride[1]+s*conv.Dilation[1]-conv.Padding[1]
					if h >= 0 && h < height && v >= 0 && v < width {
						sum += x[(c*height+h)*width+v] * w[(c*taps+r)*taps+s]
					}
				}
			}
		}
		return sum
	}
	return optest.Case{
		Name: name, Kernel: "conv2d_bias_fwd", Terms: channels*taps*taps + 1,
		Inputs: []optest.Input{
			optest.Float(optest.Normal, batch, channels, height, width), optest.Float(optest.Normal, filters, channels, taps, taps),
			optest.Float(optest.Normal, filters),
		},
		Build: func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return b.Apply(op.BiasAdd{}, b.Apply(conv, in[0], in[1]), in[2])
		},
		Naive: func(in [][]float64) []float64 {
			var y []float64
			for b := range batch {
				for k := range filters {
					for i := range p {
						for j := range q {
							y = append(y, in[2][k]+element(in[0][b*channels*height*width:], in[1][k*channels*taps*taps:], i, j))
						}
					}
				}
			}
			return y
		},
	}
}
