package bayes

import (
	"context"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
)

// TestAutoWithDropout: with dropout the loss is not a function of the weights, so that samplers on
// all data and their tests do not apply.
func TestAutoWithDropout(t *testing.T) {
	of := func(rate float64) layers.Sequential {
		body := layers.Sequential{layers.Linear{Outputs: 4}, layers.Dropout{Rate: rate}}
		return layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 4}, layers.Residual{Body: body}, layers.Linear{Outputs: 3}}
	}
	for rate, first := range map[float64]string{0: "mclmc", 0.5: "sgnht"} {
		s := Spec{Method: Auto{}, Layers: of(rate)}
		if got := MethodName(s.candidates(1000, 3)[0].spec.Method); got != first {
			t.Errorf("dropout of %v: the first candidate is %s, want %s", rate, got, first)
		}
	}
}

// Heads on frozen features keep more samples, as long as these are small.
func TestAutoSamples(t *testing.T) {
	frozen := Spec{Network: "a.onnx", Freeze: pretrained.FreezeAll, Head: headLinear}
	hidden, all := frozen, frozen
	hidden.Head, all.Freeze = "mlp:64", "none"
	for _, test := range []struct {
		name          string
		spec          Spec
		classes, want int // of each of 4 chains
	}{
		{"two classes", frozen, 2, 100}, {"ten classes", frozen, 10, 100}, {"twenty classes", frozen, 20, 50}, {"a thousand classes", frozen, 1000, 25},
		{"a hidden layer", hidden, 2, 25}, {"not frozen", all, 2, 25}, {"not pretrained", Spec{Network: "cnn"}, 2, 25},
	} {
		test.spec.Method = Auto{}
		if got := test.spec.candidates(1000, test.classes)[0].spec.Samples; got != test.want {
			t.Errorf("%s: %d samples of each chain, want %d", test.name, got, test.want)
		}
	}
}

// TestTemperaturesWithDropout: swaps of temperatures compare potentials, as tests of proposals do.
func TestTemperaturesWithDropout(t *testing.T) {
	data, err := datasets.New("dots", make([]byte, 8), []int32{0, 1, 0, 1, 0, 1, 0, 1}, 1, 1, 1, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	s := Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Dropout{Rate: 0.5}, layers.Linear{Outputs: 2}},
		Method: langevin.SGLD{}, Batch: 4, Temperatures: []float64{1, 2}, Chains: 1,
	}
	_, err = Try(context.Background(), s, data, 1)
	if want := "a network with dropout cannot be combined with temperatures"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
