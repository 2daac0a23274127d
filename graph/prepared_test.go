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

// weightShapes has the shapes of smallBatch's weights.
var weightShapes = map[string]tensor.Shape{"w": {smallFilters, smallChannels, 3, 3}, "v": {smallOutputs, smallFilters * smallSide * smallSide}}

// smallBatch is a convolution and a product, for a batch of images. Their weights are data that all
// chains share if shared is set, and otherwise parameters. If descends is set, parameters change
// after each step.
func smallBatch(batch int, shared, descends bool) *graph.Builder {
	b := graph.New(tensor.Float32)
	weights := func(name string) *graph.Node {
		if shared {
			return b.Data(name, tensor.Float32, weightShapes[name]...)
		}
		return b.Parameter(name, normal(0.1), weightShapes[name]...)
	}
	w, v := weights("w"), weights("v")
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
func loadSmallBatch(t *testing.T, batch, chains int, shared, descends bool) *graph.Session {
	t.Helper()
	s := load(t, smallBatch(batch, shared, descends), newHost(t, 2), graph.LoadOptions{Seed: 3, Chains: chains})
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

// writeWeights writes weights that depend on a number.
func writeWeights(t *testing.T, s *graph.Session, chain, number int) {
	t.Helper()
	for name, shape := range weightShapes {
		values := make([]float32, shape.Elements())
		for i := range values {
			values[i] = float32(math.Cos(float64(i * number)))
		}
		must(t, graph.Write(s, name, chain, 0, values))
	}
}

// outputs runs a step and returns the outputs for the first image.
func outputs(t *testing.T, s *graph.Session, chain int) []float32 {
	t.Helper()
	must(t, s.Run(1))
	y := make([]float32, smallOutputs)
	must(t, graph.Read(s, "y", chain, 0, y))
	return y
}

// Batches of a few images keep prepared weights from step to step, until others are written.
func TestSmallBatches(t *testing.T) {
	for _, chains := range []int{1, 3} {
		for _, shared := range []bool{false, true} {
			kept := loadSmallBatch(t, 2, chains, shared, false)
			for number := range 3 {
				fresh := loadSmallBatch(t, 2, chains, shared, false)
				for chain := range chains {
					if shared && chain > 0 {
						break
					}
					writeWeights(t, kept, chain, 1+number+chain)
					writeWeights(t, fresh, chain, 1+number+chain)
				}
				for chain := range chains {
					want := outputs(t, fresh, chain)
					for range 2 {
						if got := outputs(t, kept, chain); !slices.Equal(got, want) {
							t.Errorf("%d chains (shared: %t), chain %d, write %d: %v, in a new session %v", chains, shared, chain, number, got[:3], want[:3])
						}
					}
				}
			}
		}
	}
}

// With weights that chains share, such as a frozen network's, an image has the same bits in batches
// of up to 16 images.
func TestImageInSmallBatches(t *testing.T) {
	convolution := kernel.Conv2D{
		B: 16, C: smallChannels, H: smallSide, W: smallSide, K: smallFilters, R: 3, S: 3,
		StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1,
	}
	if plan, err := convolution.Forward(); err != nil || !plan.Winograd() {
		t.Fatalf("the convolution is not one of Winograd's (%v)", err)
	}
	var want []float32
	for _, batch := range []int{16, 1, 5} {
		s := loadSmallBatch(t, batch, 1, true, false)
		writeWeights(t, s, 0, 2)
		got := outputs(t, s, 0)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("in a batch of %d: %v, in a batch of 16 %v", batch, got[:3], want[:3])
		}
	}
}

// Weights that an op updates are prepared in each step.
func TestSmallBatchWithUpdates(t *testing.T) {
	s, fresh := loadSmallBatch(t, 1, 1, false, true), loadSmallBatch(t, 1, 1, false, true)
	first := outputs(t, s, 0)
	state := save(t, s, 0)
	second := outputs(t, s, 0)
	must(t, fresh.Restore(0, state, 1))
	if got := outputs(t, fresh, 0); !slices.Equal(got, second) || slices.Equal(second, first) {
		t.Errorf("outputs are %v, then %v, and %v in a session that continues", first[:3], second[:3], got[:3])
	}
}
