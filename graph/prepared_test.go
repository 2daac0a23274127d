package graph_test

import (
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// The sizes of smallBatch's layers. The host computes the convolution by one of Winograd's
// algorithms.
const smallChannels, smallSide, smallFilters, smallOutputs = 64, 14, 64, 33

// smallBatch is a convolution and a product, for a batch of images. If descends is set, their
// parameters change after each step.
func smallBatch(batch int, descends bool) *graph.Builder {
	b := graph.New(tensor.Float32)
	w := b.Parameter("w", normal(0.1), smallFilters, smallChannels, 3, 3)
	v := b.Parameter("v", normal(0.1), smallOutputs, smallFilters*smallSide*smallSide)
	x := b.Data("x", tensor.Float32, batch, smallChannels, smallSide, smallSide)
	y := b.Apply(op.ReLU{}, b.Apply(op.Conv2D{Stride: op.Square(1), Padding: op.Square(1), Dilation: op.Square(1)}, x, w))
	b.Output("y", b.Apply(op.MatMul{TransposeB: true}, b.Apply(op.ViewAs(batch, smallFilters*smallSide*smallSide), y), v))
	if descends {
		b.Apply(descend{0.01}, w, w)
		b.Apply(descend{0.01}, v, v)
	}
	return b
}

// loadSmallBatch loads the program with the same image at each place of the batch.
func loadSmallBatch(t *testing.T, batch, chains int, descends bool) *graph.Session {
	t.Helper()
	s := load(t, smallBatch(batch, descends), newHost(t, 2), graph.LoadOptions{Seed: 3, Chains: chains})
	const size = smallChannels * smallSide * smallSide
	x := make([]float32, size)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	for image := range batch {
		must(t, graph.Write(s, "x", 0, image*size, x))
	}
	return s
}

// outputs runs a step and returns the outputs for the first image.
func outputs(t *testing.T, s *graph.Session, chain int) []float32 {
	t.Helper()
	must(t, s.Run(1))
	y := make([]float32, smallOutputs)
	must(t, graph.Read(s, "y", chain, 0, y))
	return y
}

// Batches of a few images keep prepared weights from step to step. Their bits are those of a batch
// that does not, also after other weights have been written.
func TestSmallBatches(t *testing.T) {
	const chains = 3
	convolution := kernel.Conv2D{
		B: 16, C: smallChannels, H: smallSide, W: smallSide, K: smallFilters, R: 3, S: 3,
		StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1,
	}
	if plan, err := convolution.Forward(); err != nil || !plan.Winograd() {
		t.Fatalf("the convolution is not one of Winograd's (%v)", err)
	}
	for _, batch := range []int{1, 5} {
		small, large := loadSmallBatch(t, batch, chains, false), loadSmallBatch(t, 16, chains, false)
		for write := range 3 {
			if write > 0 { // of one chain's weights
				for name, shape := range map[string]tensor.Shape{"w": {smallFilters, smallChannels, 3, 3}, "v": {smallOutputs, smallFilters * smallSide * smallSide}} {
					values := make([]float32, shape.Elements())
					for i := range values {
						values[i] = float32(math.Cos(float64(i * (batch + write))))
					}
					must(t, graph.Write(small, name, write, 0, values))
					must(t, graph.Write(large, name, write, 0, values))
				}
			}
			for chain := range chains {
				want := outputs(t, large, chain)
				if got := outputs(t, small, chain); !slices.Equal(got, want) {
					t.Errorf("batch of %d, chain %d, after %d writes: %v, in a batch of 16 %v", batch, chain, write, got[:3], want[:3])
				}
			}
		}
	}
}

// Weights that an op updates are prepared in each step.
func TestSmallBatchWithUpdates(t *testing.T) {
	s, fresh := loadSmallBatch(t, 1, 1, true), loadSmallBatch(t, 1, 1, true)
	first := outputs(t, s, 0)
	state := save(t, s, 0)
	second := outputs(t, s, 0)
	must(t, fresh.Restore(0, state, 1))
	if got := outputs(t, fresh, 0); !slices.Equal(got, second) || slices.Equal(second, first) {
		t.Errorf("outputs are %v, then %v, and %v in a session that continues", first[:3], second[:3], got[:3])
	}
}
