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
// it. For others, chainMeans are the centres of their samples.
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

// chainMeans averages the predictions of the networks at the mean weights of each chain's samples,
// which centre the samples of a chain that stays around one mode. Samples of a chain must follow
// one another. A nil *chainMeans does nothing.
type chainMeans struct {
	predictions *evaluate.Predictions // after end; nil if one is not finite

	predictor *samples.SamplePredictor
	average   *evaluate.Predictive
	rows      []float32
	chain     string         // of the samples so far
	last      samples.Sample // of the chain
	means     [][]float64    // by parameter
	weight    float64        // of the chain's samples
	failed    error
}

// begin prepares to predict a number of images.
func (m *chainMeans) begin(predictor *samples.SamplePredictor, images int) (err error) {
	if m == nil {
		return nil
	}
	m.predictor, m.rows = predictor, make([]float32, images*predictor.Classes())
	m.average, err = evaluate.NewPredictive(images, predictor.Classes())
	return err
}

// add adds a sample of a chain.
func (m *chainMeans) add(chain string, s samples.Sample) {
	if m == nil || m.failed != nil {
		return
	}
	if chain != m.chain || m.means == nil {
		m.endChain()
		m.chain, m.weight, m.means = chain, 0, make([][]float64, len(s.Parameters))
		for i, p := range s.Parameters {
			m.means[i] = make([]float64, len(p.Values))
		}
	}
	// The weighted mean so far: mean += w/W (x - mean), where W is the weight of all samples.
	m.last = s
	m.weight += s.Weight
	step := s.Weight / m.weight
	for i, p := range s.Parameters {
		if i >= len(m.means) || len(p.Values) != len(m.means[i]) {
			m.failed = errors.Errorf("%s has another shape than before", p.Name)
			return
		}
		for k, value := range p.Values {
			m.means[i][k] += step * (float64(value) - m.means[i][k])
		}
	}
}

// endChain predicts with the means of the chain.
func (m *chainMeans) endChain() {
	if m.means == nil || m.failed != nil {
		return
	}
	at := m.last
	at.Parameters = nil
	for i, p := range m.last.Parameters {
		p.Values = make([]float32, len(m.means[i]))
		for k, mean := range m.means[i] {
			p.Values[k] = float32(mean)
		}
		at.Parameters = append(at.Parameters, p)
	}
	if m.failed = m.predictor.Predict(at, m.rows); m.failed == nil {
		m.failed = m.average.Add(m.rows, m.weight)
	}
}

// end ends the last chain.
func (m *chainMeans) end(data *datasets.Dataset) {
	if m == nil {
		return
	}
	m.endChain()
	if m.failed == nil && m.average.Samples() > 0 {
		m.predictions = m.average.Predictions(data.Name, data.Labels)
	}
}

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
		inputs, err := r.inputs(ctx, device, p, images)
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
			// Probabilities that are not finite. There is then no average, see the return value.
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
