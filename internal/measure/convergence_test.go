package measure

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// TestHeldOutRestore: a state has classes of the network, and a sample whose predictions are not
// finite is an error rather than an observation.
func TestHeldOutRestore(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	images := samples.Images{Pixels: make([]byte, 3*4), Channels: 1, Height: 2, Width: 2, Mean: []float64{0.5}, Std: []float64{1}}
	h, err := NewHeldOut(host, images, layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 2}}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	sample := samples.Sample{Step: 7, Weight: 1, Parameters: []samples.Parameter{
		{Name: "linear1.weight", Shape: tensor.Shape{2, 4}, Values: []float32{1, 1, 1, 1, -1, -1, -1, -1}},
		{Name: "linear1.bias", Shape: tensor.Shape{2}, Values: []float32{0, 0}},
	}}
	if err := h.Observe([]samples.Sample{sample}, 7); err != nil {
		t.Fatal(err)
	}
	good := h.state()
	if err := h.restore(good); err != nil {
		t.Error(err)
	}
	for _, class := range []float64{-1, 2, math.NaN(), math.Inf(1)} {
		bad := append([]float64{}, good...)
		bad[3] = class
		if err := h.restore(bad); err == nil || !strings.Contains(err.Error(), "class must be 0 to 1") {
			t.Errorf("class %v: %v", class, err)
		}
	}
	for i := range sample.Parameters[0].Values {
		sample.Parameters[0].Values[i] *= 3e38
	}
	if err := h.Observe([]samples.Sample{sample}, 8); err == nil || !strings.Contains(err.Error(), "chain 0 at step 7") {
		t.Error(err)
	}
}
