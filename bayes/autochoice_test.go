package bayes

import (
	"testing"

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
