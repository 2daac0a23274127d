package bayes

import (
	"context"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
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
		if got := MethodName(s.candidates(1000)[0].spec.Method); got != first {
			t.Errorf("dropout of %v: the first candidate is %s, want %s", rate, got, first)
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
