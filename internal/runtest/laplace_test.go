package runtest

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// TestLaplaceObservesEachImageOnce: if batches do not divide the data, the last batch continues
// with the first images, which must not count again. With steps of size 0, draws depend on the
// curvature only.
func TestLaplaceObservesEachImageOnce(t *testing.T) {
	data := squares(t, 50, 4, 1)
	drawn := func(batch, epochs int) []samples.Parameter {
		spec := bayes.Spec{
			Network: "mlp-5", Method: bayes.LaplaceApproximation{}, Schedule: optimizers.Constant{Rate: 1e-30}, Batch: batch, Epochs: epochs, Samples: 1,
		}
		files, err := fit(t, spec, trainOn(data)).Samples()
		must(t, err)
		sample, err := samples.ReadSample(files[0])
		must(t, err)
		return sample.Parameters
	}
	whole, wrapped := drawn(25, 5), drawn(20, 4) // 10 steps each
	for p, parameter := range whole {
		for i, v := range parameter.Values {
			if got := wrapped[p].Values[i]; !(math.Abs(float64(got-v)) < 1e-4) {
				t.Fatalf("%s[%d] is %v with a batch that wraps, %v without", parameter.Name, i, got, v)
			}
		}
	}
}

// TestLaplaceUnderAWidePrior: if draws lose what the network has learned, there is a remark.
func TestLaplaceUnderAWidePrior(t *testing.T) {
	data := squares(t, 200, 4, 1)
	remarks := func(prior langevin.Prior) (all string) {
		spec := bayes.Spec{Network: "mlp-20", Method: bayes.LaplaceApproximation{}, Batch: 20, Epochs: 60, Prior: &prior}
		fit(t, spec, trainOn(data), bayes.WithObserver(func(e bayes.Event) { all += e.Remark }))
		return all
	}
	const want = "laplace: the average over 10 draws has the class of the trained network on only "
	if got := remarks(langevin.Gaussian(100)); !strings.Contains(got, want) {
		t.Errorf("remarks are %q, want %q", got, want)
	}
	if got := remarks(langevin.Gaussian(0.3)); strings.Contains(got, want) {
		t.Errorf("under a narrow prior remarks are %q", got)
	}
}
