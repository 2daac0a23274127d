package pollen

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
)

// decisions are the thresholds of a calibration at the levels of an environment.
type decisions struct {
	calibration *evaluate.Calibration // nil without one
	sets        *evaluate.Sets        // nil if there are too few held-out images for the level
	// rate is the rate of in-distribution decisions, and nonconformity the highest score that is
	// accepted. rate is 0 if there are no decisions.
	rate, nonconformity float64
	certificate         *evaluate.Certificate // nil if no risk was asked for
}

// decisionsBy returns the decisions by a calibration, which may be nil. Prediction sets and
// InDistribution are quantiles of the held-out images, and a quantile such as 0.99 needs enough of
// them: each is left out if there were too few. Without enough for the risk, all images are
// referred.
func (e environment) decisionsBy(c *evaluate.Calibration) (d *decisions, err error) {
	d = &decisions{calibration: c}
	if e.risk > 0 {
		d.certificate = &evaluate.Certificate{Risk: e.risk, Confidence: e.riskConfidence}
	}
	if c == nil {
		return d, nil
	}
	if c.Supports(e.level) {
		if d.sets, err = c.Sets(e.level, e.setRule); err != nil {
			return nil, err
		}
	}
	if c.Decides(e.inDistributionRate) {
		d.rate = e.inDistributionRate
		if d.nonconformity, err = c.NonconformityThreshold(d.rate); err != nil {
			return nil, err
		}
	}
	if d.certificate != nil {
		*d.certificate, err = c.Certify(e.risk, e.riskConfidence)
	}
	return d, err
}

// answers returns the answers for predictions. names are those of the classes.
func (d *decisions) answers(p *evaluate.Predictions, names []string) ([]Answer, error) {
	// Quantiles that were calibrated with one number of samples do not hold for the average over
	// another.
	if d.calibration != nil && d.calibration.Samples != p.Samples {
		return nil, invalid("calibrated with %d samples, predicted with %d: calibrate again", d.calibration.Samples, p.Samples)
	}
	answers := make([]Answer, p.Len())
	for i := range answers {
		class, confidence := p.Guess(i)
		answers[i] = Answer{
			Class: names[class], Index: class, Confidence: confidence, Entropy: p.Entropy[i], MutualInformation: p.MutualInformation[i],
			Probabilities: p.Probabilities[i*p.Classes : (i+1)*p.Classes : (i+1)*p.Classes],
		}
		if d.certificate != nil {
			answers[i].Refer = new(!d.certificate.Answers(confidence))
		}
	}
	if err := d.addSets(answers, p, names); err != nil {
		return nil, err
	}
	if d.rate == 0 || p.Nonconformity == nil {
		return answers, nil
	}
	for i, score := range p.Nonconformity {
		if math.IsNaN(score) {
			return nil, errors.Errorf("pollen: the nonconformity score of image %d is NaN", i)
		}
		answers[i].InDistribution, answers[i].PValue = new(score <= d.nonconformity), new(d.calibration.PValue(score))
		answers[i].Calibrated = d.sets != nil
	}
	return answers, nil
}

// addSets adds the prediction sets to answers, if there are any.
func (d *decisions) addSets(answers []Answer, p *evaluate.Predictions, names []string) error {
	if d.sets == nil {
		return nil
	}
	sets, err := d.sets.Of(p.Probabilities, p.Classes)
	if err != nil {
		return err
	}
	var marginal []string
	if d.sets.Rule.PerClass {
		marginal = []string{}
	}
	for _, t := range d.sets.Fallbacks() {
		marginal = append(marginal, names[t.Class])
	}
	for i := range answers {
		answers[i].PredictionSet, answers[i].MarginalClasses = []string{}, marginal
		for _, class := range sets[i] {
			answers[i].PredictionSet = append(answers[i].PredictionSet, names[class])
		}
	}
	return nil
}
