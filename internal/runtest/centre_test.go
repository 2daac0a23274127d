package runtest

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// remarked makes a run and returns it with its remarks, one per line.
func remarked(t *testing.T, spec bayes.Spec, data *datasets.Splits) (run *bayes.Run, remarks string) {
	t.Helper()
	run = fit(t, spec, data, bayes.WithObserver(func(e bayes.Event) {
		if e.Remark != "" {
			remarks += e.Remark + "\n"
		}
	}))
	return run, remarks
}

// If the average over samples predicts held-out images worse than the network at the samples'
// centre, there is a remark, for each kind of method; otherwise there is none.
func TestAverageWorseThanItsCentre(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 200, 4, 1), Validation: squares(t, 200, 4, 2)}
	for _, c := range []struct {
		name, method, schedule string
		prior, temperature     float64 // 0 is the default
		advice                 string  // "" is no remark
	}{
		{"narrow prior", "laplace", "", 0.1, 0, ""},
		{"wide prior", "laplace", "", 100, 0, "a narrower prior or more"},
		{"little dropout", "mc-dropout:rate=0.05", "", 0, 0, ""},
		{"much dropout", "mc-dropout:rate=0.95", "", 0, 0, "a lower rate of dropout or more"},
		{"narrow Gaussian", "bbb:initial-std=0.001", "constant:0.003", 0, 0, ""},
		{"wide Gaussian", "bbb:initial-std=0.7", "constant:0.005", 0, 0, "a narrower prior or more"},
		{"small steps", "swag", "", 0, 0, ""},
		{"posterior", "sgld", "", 0, 0, ""},
		{"hot", "sgld", "constant:0.05", 0.05, 100, "a lower temperature, a narrower prior or more"},
		{"one sample of each chain", "ensemble", "", 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := bayes.Spec{Network: "mlp-16", Method: methodOf(t, c.method), Batch: 20, Epochs: 20, Samples: 20}
			if c.method == "ensemble" {
				spec.Samples, spec.Chains = 0, 2
			}
			if c.schedule != "" {
				var err error
				spec.Schedule, err = optimizers.ParseSchedule(c.schedule)
				must(t, err)
			}
			if c.prior > 0 {
				spec.Prior = &langevin.Prior{Kind: langevin.GaussianPrior, Scale: c.prior}
			}
			if c.temperature > 0 {
				spec.Temperature = &c.temperature
			}
			_, remarks := remarked(t, spec, data)
			const words = "is worse than the network at their centre: accuracy "
			if got := strings.Contains(remarks, words); got != (c.advice != "") || !strings.Contains(remarks, c.advice) {
				t.Errorf("remarks %q, want one on the centre: %v, with %q", remarks, c.advice != "", c.advice)
			}
		})
	}
}
