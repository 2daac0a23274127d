package runtest

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// A sampler whose weights are still far from equilibrium reports this while it runs, once, and
// one that is near equilibrium does not.
func TestTemperatureFarOffIsRemarked(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	for rate, want := range map[float64]int{1e-4: 1, 0.1: 0} {
		said := 0
		spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 5, Epochs: 40, BurnIn: new(20), Samples: 40,
			Schedule: optimizers.Constant{Rate: rate}}
		run := fit(t, spec, data, bayes.WithObserver(func(e bayes.Event) {
			if strings.HasPrefix(e.Remark, "the temperature is far off: measured ") && strings.Contains(e.Remark, ", requested 1; ") {
				said++
			}
		}))
		d, err := run.Diagnostics()
		if must(t, err); said != want || want == 0 && math.Abs(float64(d.Temperatures[0].Configurational)-1) > 0.3 {
			t.Errorf("at the rate %g it was said %d times, want %d: the temperature is %+v", rate, said, want, d.Temperatures[0])
		}
	}
}
