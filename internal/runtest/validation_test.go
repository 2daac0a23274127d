package runtest

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
)

// TestValidationOfTheAverage: the last negative log-likelihood and accuracy of an event come from
// the averaged predictions, while the loss is the chains' mean.
func TestValidationOfTheAverage(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 100, 4, 1), Validation: squares(t, 60, 4, 2)}
	var last bayes.Event
	spec := bayes.Spec{Network: "mlp-3", Method: bayes.Ensemble{}, Batch: 20, Epochs: 40, Chains: 3}
	run := fit(t, spec, data, bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "fit" && e.Remark == "" {
			last = e
		}
	}))
	answers, err := run.With(bayes.WithUnscaled()).Predict(t.Context(), data.Validation)
	must(t, err)
	nll, accuracy := 0.0, 0.0
	for i, a := range answers {
		nll -= math.Log(a.Probabilities[data.Validation.Labels[i]]) / float64(len(answers))
		if a.Index == int(data.Validation.Labels[i]) {
			accuracy += 1 / float64(len(answers))
		}
	}
	if math.Abs(last.ValidationNLL-nll) > 1e-5 || math.Abs(last.AverageAccuracy-accuracy) > 1e-9 || !(last.ValidationLoss > nll) {
		t.Errorf("the last event is %+v, want the NLL %v and the accuracy %v of the average, and a larger loss", last, nll, accuracy)
	}
}
