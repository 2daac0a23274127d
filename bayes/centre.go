package bayes

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// centred is implemented by the methods that train a network in each chain, and then sample around
// it. For others, the means of the chains are the centres of their samples.
type centred interface {
	// centre returns these networks' states and, for Build, their specification.
	centre(t *job) (Spec, []samples.Sample, error)
}

// centre returns the mode of each chain.
func (LaplaceApproximation) centre(t *job) (Spec, []samples.Sample, error) {
	states, err := t.takeEqual()
	return t.spec, states, err
}

// centre returns the state of each chain, without dropout.
func (Dropout) centre(t *job) (Spec, []samples.Sample, error) {
	states, err := t.takeEqual()
	spec := t.spec
	spec.Method = Ensemble{}
	return spec, states, err
}

// centre returns the means of the fitted Gaussian.
func (BayesByBackprop) centre(t *job) (Spec, []samples.Sample, error) {
	states, err := t.takeEach(func(chain int) (samples.Sample, error) { return t.meanField.Mean(t.session, chain) })
	return t.spec, states, err
}

// An average over samples should predict better than the one network that they surround. Where it
// does not, the samples spread too far, for instance because the rate is too high for a SWAG or the
// curvature too small for a Laplace approximation. Calibrate compares the two, see remarkCentre.

// atCentres returns the average of the predictions at the states of some chains, for the network of
// a specification; nil if they are not finite.
func (r *Run) atCentres(ctx context.Context, data *datasets.Dataset, spec Spec, states []samples.Sample) (*evaluate.Predictions, error) {
	images, err := r.images(data)
	if err != nil {
		return nil, err
	}
	p, err := spec.parts(images, data.Classes)
	if err != nil {
		return nil, err
	}
	var average *evaluate.Predictive
	err = r.on(func(device tensor.Device) error {
		inputs, err := r.read(ctx, device, p, data.Name, images.Pixels)
		if err != nil {
			return err
		}
		predictor, err := samples.NewSamplePredictor(device, tensor.Float32, inputs, predictBatch, p.network.Apply)
		if err != nil {
			return err
		}
		defer predictor.Close()
		if average, err = evaluate.NewPredictive(data.Len(), predictor.Classes()); err != nil {
			return err
		}
		rows := make([]float32, data.Len()*predictor.Classes())
		for _, s := range states {
			if err := ctx.Err(); err != nil {
				return errors.Wrap(err, "pollen: calibrate")
			}
			if err := predictor.Predict(s, rows); err != nil {
				return err
			}
			// The probabilities are not finite: there is no average, and atCentres returns nil.
			if average.Add(rows, s.Weight) != nil {
				return nil
			}
		}
		return nil
	})
	if err != nil || average.Samples() < len(states) {
		return nil, err
	}
	return average.Predictions(data.Name, data.Labels), nil
}

// remarkCentre reports a posterior average that predicts held-out images worse than the networks
// that its samples surround: the mode of a Laplace approximation, or the mean of a chain.
func (r *Run) remarkCentre(average, centre *evaluate.Predictions) error {
	if centre == nil {
		return nil
	}
	c, err := average.ContrastWith(centre)
	if err != nil || !c.Worse {
		return err
	}
	advice := "a lower temperature, a narrower prior"
	switch r.manifest.Spec.Method.(type) {
	case Dropout:
		advice = "a lower rate of dropout"
	case SWAG:
		advice = "a lower learning rate"
	case LaplaceApproximation, BayesByBackprop:
		advice = "a narrower prior"
	}
	r.remark(fmt.Sprintf("the average over samples is worse than the network at their centre: accuracy %.3f and NLL %.3f "+
		"instead of %.3f and %.3f on the %d held-out images. The samples spread too far: %s or more training images may help",
		c.Accuracy, c.NLL, c.ReferenceAccuracy, c.ReferenceNLL, average.Len(), advice))
	return nil
}

// remarkAllClasses reports a calibration whose prediction sets at the run's level, or at the level
// of scores, have all classes.
func (r *Run) remarkAllClasses(c *evaluate.Calibration) {
	if reason := cmp.Or(c.AllClasses(r.level), c.AllClasses(evaluate.Level)); reason != "" {
		r.remark(reason)
	}
}
