package cuda_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// TestRoundedProducts compares each tile of products that round their operands once with the naive
// loops: edges, depths of less than a stage and of many, slices, all orientations, with a bias, a
// ReLU, a mask.
func TestRoundedProducts(t *testing.T) {
	needs(t, cuda.RoundedVariable)
	for number, size := range plan.RoundedTiles() {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			gpu := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})
			plan.OnlyRounded(t, number)
			m, n := size[0]+3, size[1]+5
			rows := []optest.Case{
				product("along the depth", m, 300, n, op.MatMul{TransposeB: true}),
				product("across the depth", size[0]-4, 37, size[1]+4, op.MatMul{TransposeA: true}),
				product("the first along the depth", m, 20, size[1]-4, op.MatMul{}),
				product("the second along the depth", size[0]+4, 132, n, op.MatMul{TransposeA: true, TransposeB: true}),
				withReLU("relu", 9, 40, 7),
				masked("mask", m, 68, size[1]+8),
			}
			for _, c := range testenv.Some(t, 2, rows) {
				c.Loosen, c.Reason, c.Speed, c.Flops, c.NoGradient = looseness[cuda.BF16], "operands are rounded", true, 1, true
				device := &catching{Device: gpu}
				optest.RunCases(t, device, []optest.Case{c})
				if want := fmt.Sprintf("matmul_rounded_%dx%d_bf16", size[0], size[1]); !slices.Contains(cuda.Symbols(device.runner), want) {
					t.Errorf("%s: there is no %s among %v", c.Name, want, cuda.Symbols(device.runner))
				}
			}
		})
	}
}

// TestRoundedBits: products that round their operands once have the bits of other tiles, so that
// which of them is used may follow the number of chains.
func TestRoundedBits(t *testing.T) {
	needs(t, cuda.RoundedVariable)
	device := cudatest.GPU(t, cuda.Options{Precision: cuda.BF16})
	for _, matmul := range []op.MatMul{{TransposeB: true}, {TransposeA: true}, {}, {TransposeA: true, TransposeB: true}} {
		compute := func(t *testing.T) []float32 { return productOnce(t, device, 68, 428, 72, matmul) }
		want := compute(t)
		for number, size := range plan.RoundedTiles() {
			t.Run(fmt.Sprintf("%v/%dx%d", matmul, size[0], size[1]), func(t *testing.T) {
				plan.OnlyRounded(t, number)
				for i, v := range compute(t) {
					if math.Float32bits(v) != math.Float32bits(want[i]) {
						t.Fatalf("element %d is %v, by another tile %v", i, v, want[i])
					}
				}
			})
		}
	}
}
