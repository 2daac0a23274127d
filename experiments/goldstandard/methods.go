package main

import (
	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/optimizers"
)

// specification returns the settings that methods share. Rates are on the mean loss.
func (s *study) specification(m bayes.Method, schedule optimizers.Schedule, epochs int) bayes.Spec {
	return bayes.Spec{
		Network: s.network, Method: m, Schedule: schedule, Batch: s.batch, Epochs: max(shortest, s.scaled(epochs)), Seed: 1, Prior: new(s.prior),
	}
}

// shortest is the minimum length of a run in epochs, enough for a burn-in of each cycle and SWAG's
// states.
const shortest = 16

// run makes the run of an entry, or resumes it.
func (s *study) run(e comparison.Entry) (*bayes.Run, error) {
	return s.runs.Fit(s.ctx, e, &s.data, bayes.WithDevice(s.device))
}

// predict averages the probabilities of a method's samples for the test images, weighted with the
// samples' weights. For samplers the row also has the temperature of the directions that
// predictions depend on, and split R-hat of predictions.
func (s *study) predict(m method) (r row, err error) {
	run, err := s.run(comparison.Entry{Title: m.name, Spec: m.spec(s)})
	if err != nil {
		return r, err
	}
	found, err := run.Diagnostics()
	if err != nil {
		return r, err
	}
	average, err := run.Predictions(s.ctx, s.data.Test, nil)
	if err != nil {
		return r, err
	}
	return row{m.name, average.Probabilities, found.Predictions, found.Predicted}, nil
}

// row has a method's predictions for the test images, the temperature of the directions that
// predictions depend on, and the convergence of its chains. The latter two are nil if they are
// not measured.
type row struct {
	name        string
	mean        []float64
	temperature *diagnostics.Measured
	mixing      *diagnostics.Mixing
}
