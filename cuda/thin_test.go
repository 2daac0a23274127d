package cuda_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// TestThinProducts compares each thin kernel with the naive loops, on random numbers and on small
// integers, whose sums are exact: edges, one turn and several, depths of one part and of many, few
// rows and few columns, both orientations of either operand, a bias, a ReLU, a mask. As these
// kernels multiply in float32, bf16 needs no more tolerance than fp32.
func TestThinProducts(t *testing.T) {
	kinds, sizes := plan.ThinTiles()
	for number, kind := range kinds {
		most, turns := sizes[number][0], sizes[number][1]
		t.Run(fmt.Sprintf("%s/%dx%d", kind, most, turns), func(t *testing.T) {
			gpu := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})
			want := plan.OnlyThin(t, "matmul", number, turns)
			for _, c := range thinCases(kind, most-most/3) {
				c.Speed, c.Flops, c.NoGradient = true, 1, true // float32 only
				t.Run(c.Name, func(t *testing.T) {
					for name, fill := range map[string]optest.Fill{"random": optest.Normal, "integers": optest.Ties} {
						if name == "integers" && !testenv.All(t) {
							continue
						}
						c, device := c, &catching{Device: gpu}
						c.Name, c.Inputs = name, slices.Clone(c.Inputs)
						for i := range c.Inputs {
							c.Inputs[i].Fill = fill
						}
						optest.RunCases(t, device, []optest.Case{c})
						if device.runner != nil && !slices.Contains(cuda.Symbols(device.runner), want) {
							t.Errorf("there is no %s among %v", want, cuda.Symbols(device.runner))
						}
					}
				})
			}
		})
	}
}

// thinCases returns products with few rows, columns or depths that a kind of thin kernels can
// compute.
func thinCases(kind string, few int) []optest.Case {
	switch kind {
	case "dots": // the longer side along the depth
		return []optest.Case{
			product("few columns", 23, 172, few, op.MatMul{TransposeB: true}),
			product("few columns, odd depth", 23, 171, few, op.MatMul{TransposeB: true}),
			product("few columns across the depth", few+5, 64, few, op.MatMul{}),
			product("few rows", few, 260, few+9, op.MatMul{TransposeB: true}),
			product("few rows across the depth", few, 132, few+2, op.MatMul{TransposeA: true, TransposeB: true}),
			product("deep", few+1, 2100, few, op.MatMul{TransposeB: true}),
			withReLU("relu", few+3, 100, few),
			masked("mask", few+3, 130, few),
		}
	case "columns": // the longer side across the depth
		return []optest.Case{
			product("few columns", 75, 40, few, op.MatMul{TransposeA: true}),
			product("few columns along the depth", 39, 300, few, op.MatMul{TransposeA: true, TransposeB: true}),
			product("few rows", few, 70, 45, op.MatMul{TransposeA: true}),
			product("few rows along the depth", few, 600, few+3, op.MatMul{}),
			masked("mask", few, 130, few+4),
		}
	default:
		return []optest.Case{
			product("matrices", 37, few, 52, op.MatMul{}),
			product("odd columns", 37, few, 51, op.MatMul{}),
			product("few columns", 70, few, 3, op.MatMul{TransposeA: true}),
			product("transposed", 5, few, 48, op.MatMul{TransposeB: true}),
			product("both transposed", 35, few, 35, op.MatMul{TransposeA: true, TransposeB: true}),
			withReLU("relu", 35, few, 36),
			masked("mask", 35, few, 36),
			masked("mask, odd columns", 36, few, 35),
		}
	}
}

// withReLU returns the case of a linear layer's product with a bias and a ReLU.
func withReLU(name string, m, k, n int) optest.Case {
	c := product(name, m, k, n, op.MatMul{TransposeB: true})
	build, naive := c.Build, c.Naive
	c.Build = func(b *graph.Builder, in []*graph.Node) *graph.Node { return b.Apply(op.ReLU{}, build(b, in)) }
	c.Naive = func(in [][]float64) []float64 {
		y := naive(in)
		for i := range y {
			y[i] = max(0, y[i])
		}
		return y
	}
	return c
}

// TestThinBits: the number of rows of a warp, of columns of a thread, and of turns may depend on
// the number of chains, because they do not change the bits of the sums.
func TestThinBits(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})
	kinds, sizes := plan.ThinTiles()
	want := map[string][]float32{}
	for number, kind := range kinds {
		most := sizes[number][0]
		for _, turns := range []int{1, 3} {
			plan.OnlyThin(t, "matmul", number, turns)
			m, k, n, matmul := 45, 333, most-2, op.MatMul{TransposeB: true}
			switch kind {
			case "columns":
				matmul = op.MatMul{TransposeA: true}
			case "shallow":
				k, n = most-2, 44
			}
			got := productOnce(t, device, m, k, n, matmul)
			name := fmt.Sprint(kind, most)
			if want[name] == nil {
				want[name] = got
			}
			for i := range got {
				if math.Float32bits(got[i]) != math.Float32bits(want[name][i]) {
					t.Fatalf("%s %v, %d turns: element %d is %v, not %v as by the first instance", kind, sizes[number], turns, i, got[i], want[name][i])
				}
			}
		}
	}
}

// operandsOf returns the shapes of the operands of a product [m n] of depth k.
func operandsOf(matmul op.MatMul, m, k, n int) (left, right []int) {
	left, right = []int{m, k}, []int{k, n}
	if matmul.TransposeA {
		left = []int{k, m}
	}
	if matmul.TransposeB {
		right = []int{n, k}
	}
	return left, right
}

// productOnce computes a product of normally distributed matrices.
func productOnce(t *testing.T, device tensor.Device, m, k, n int, matmul op.MatMul) []float32 {
	t.Helper()
	b := graph.New(tensor.Float32)
	left, right := operandsOf(matmul, m, k, n)
	b.Output("y", b.Apply(matmul, b.State("a", nil, left...), b.State("b", nil, right...)))
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	session, err := program.Load(device, graph.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for name, size := range map[string]int{"a": m * k, "b": k * n} {
		if err := session.WriteFloats(name, 0, normals(size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := session.Run(1); err != nil {
		t.Fatal(err)
	}
	y := make([]float32, m*n)
	if err := session.ReadFloats("y", 0, y); err != nil {
		t.Fatal(err)
	}
	return y
}
