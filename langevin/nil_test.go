package langevin_test

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// TestNil: a nil sampler, nil arguments of Plan.Run, and the zero values of plans, posteriors and
// replica exchange are errors.
func TestNil(t *testing.T) {
	posterior := langevin.Posterior{DataSize: 3, Prior: langevin.Gaussian(1)}
	builder := func() *graph.Builder {
		b := graph.New(tensor.Float32)
		b.Parameter("w", nil, 3)
		return b
	}
	for want, err := range map[string]error{
		"the sampler must not be nil":           langevin.Attach(builder(), nil, posterior, nil, []float64{1}, []float64{1}),
		"langevin: the loss must not be nil":    langevin.Attach(builder(), langevin.SGLD{}, posterior, nil, []float64{1}, []float64{1}),
		"DataSize must be 1 to":                 langevin.Posterior{}.Validate(),
		"there must be at least 2 temperatures": langevin.ReplicaExchange{}.Validate(),
		"each cycle must have a sample":         langevin.Plan{}.Validate(),
		"observe must not be nil":               langevin.Plan{Steps: 1, Thinning: 1}.Run(t.Context(), nil, 1, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
