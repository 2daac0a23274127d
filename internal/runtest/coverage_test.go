package runtest

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// On real digits, prediction sets contain the labels of fresh digits as often as their level
// promises, and the fraction of these that are classified as in distribution is the requested
// one, up to chance. Letters are in distribution less often.
func TestCoverageOfFreshDigits(t *testing.T) {
	testenv.NeedsAll(t, "13 000 digits")
	const heldOut, fresh = 3000, 10000
	all, err := datasets.Open("mnist", datasets.Options{Offline: true})
	must(t, err)
	train, err := all.Train.Slice(0, 4000)
	must(t, err)
	held, err := all.Train.Slice(50000, 50000+heldOut)
	must(t, err)
	spec := bayes.Spec{Network: "mlp-24", Method: methodOf(t, "sghmc"), Batch: 100, Epochs: 10, BurnIn: new(6), Samples: 8, Seed: 1}
	run := fit(t, spec, &datasets.Splits{Train: train, Validation: held})
	kinds := map[string]*datasets.Dataset{"digits": all.Test, "letters": glyphs(t).Test}
	shares := map[string]float64{}
	for name, data := range kinds {
		answers, err := run.With(bayes.WithLevel(0.9), bayes.WithInDistributionRate(0.95),
			bayes.WithSetRule(evaluate.SetRule{AllowEmpty: true})).Predict(context.Background(), data)
		must(t, err)
		covered, familiar := 0.0, 0.0
		for i, a := range answers {
			if slices.Contains(a.PredictionSet, data.ClassNames[data.Labels[i]]) {
				covered++
			}
			if *a.InDistribution {
				familiar++
			}
		}
		n := float64(len(answers))
		shares[name] = familiar / n
		t.Logf("%s: %.1f %% familiar", name, 100*familiar/n)
		if name != "digits" {
			continue
		}
		// The share varies with the fresh digits, and with those held out.
		const level = 0.9
		if std := math.Sqrt(level * (1 - level) * (1./fresh + 1./heldOut)); math.Abs(covered/n-level) > 3*std {
			t.Errorf("sets cover %v of %v labels, want %v ± %v", covered/n, n, level, 3*std)
		}
		if share := familiar / n; share < 0.93 || share > 0.97 {
			t.Errorf("%v of fresh digits are familiar, want 0.95", share)
		}
	}
	if shares["letters"] > shares["digits"]-0.05 {
		t.Errorf("%v of letters are familiar, and %v of digits", shares["letters"], shares["digits"])
	}
}
