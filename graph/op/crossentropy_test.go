package op_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestCrossEntropyOfTheSure: for a confident network, the gradients by the logits are either 0 or
// far above the subnormal numbers, with which processors are slow. In float64 none is rounded to
// 0.
func TestCrossEntropyOfTheSure(t *testing.T) {
	gaps := []float64{0, 20, 44, 45, 60, 95, 100, 200}
	initialize := func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
		for i, gap := range gaps {
			values[i] = -gap
		}
	}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		b := graph.New(dtype)
		logits := b.Parameter("logits", initialize, 1, len(gaps))
		loss := b.Apply(op.CrossEntropy{}, logits, b.Data("labels", tensor.Int32, 1)) // the first class
		b.Output("gradient", b.Gradients(loss, logits)[0])
		err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
			if err := s.Evaluate(); err != nil {
				return err
			}
			gradient := make([]float32, len(gaps))
			if err := s.ReadFloats("gradient", 0, gradient); err != nil {
				return err
			}
			for i, gap := range gaps[1:] {
				want := math.Exp(-gap)
				if dtype == tensor.Float32 && want < 0x1p-64 {
					want = 0
				}
				if got := float64(gradient[1+i]); math.Abs(got-want) > 1e-6*want+0x1p-149 {
					t.Errorf("%v: the gradient of a class at %v below the label's is %v, want %v", dtype, gap, got, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
