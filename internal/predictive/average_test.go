package predictive_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/internal/predictive"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// TestNotFinite: a sample whose predictions are not finite leaves both averages as they were, and
// is not seen by visit.
func TestNotFinite(t *testing.T) {
	inputs := samples.Images{Features: 2, Rows: []float32{1, 2, -1, 0.5}}
	of := func(values ...float32) samples.Sample {
		return samples.Sample{Weight: 1, Parameters: []samples.Parameter{{Name: "linear1.weight", Shape: tensor.Shape{2, 2}, Values: values}}}
	}
	predict := func(all ...samples.Sample) (average, atMeans []float64, visited int) {
		model := predictive.Model{Apply: layers.Linear{Outputs: 2, NoBias: true}.Apply, Samples: len(all), Passes: 1}
		device := tensor.NewHost(1)
		defer device.Close()
		a, err := model.Average(device, inputs, inputs, 2, true)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for _, s := range all {
			err := a.Add("chain", s, func([]float32, float64) error { visited++; return nil })
			if err != nil && !errors.As(err, new(*samples.NotFiniteError)) {
				t.Fatal(err)
			}
		}
		p, err := a.Predictions("data", nil)
		if err != nil {
			t.Fatal(err)
		}
		at := a.AtMeans("data", nil)
		if at == nil {
			t.Fatal("no predictions at the means")
		}
		return p.Probabilities, at.Probabilities, visited
	}
	const huge = math.MaxFloat32 // logits of it overflow
	average, atMeans, _ := predict(of(1, 0, 0, 1), of(2, 0, 0, 1))
	average2, atMeans2, visited := predict(of(huge, huge, 0, 1), of(1, 0, 0, 1), of(huge, huge, 0, 1), of(2, 0, 0, 1))
	if !slices.Equal(average, average2) || !slices.Equal(atMeans, atMeans2) || visited != 2 {
		t.Errorf("got %v, at the means %v, of %d samples; want %v, %v, of 2", average2, atMeans2, visited, average, atMeans)
	}
}
