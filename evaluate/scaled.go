package evaluate

import (
	"math"

	"github.com/pkg/errors"
)

// Scaled returns predictions of the run with calibrated probabilities: each raised to Exponent, and
// divided by the sum over the classes. The order of the classes does not change, nor do
// uncertainties other than Confidence. It returns an error if Exponent or the probabilities are not
// valid, and if the predictions have other classes or numbers of samples than the calibration.
func (c *Calibration) Scaled(p *Predictions) (*Predictions, error) {
	if p == nil {
		return nil, errors.New("evaluate: Scaled: predictions must not be nil")
	}
	err := c.checkExponent("Scaled") // not all scores, of which there may be more than predictions
	if err == nil {
		err = c.checkMatches("Scaled", p)
	}
	if err == nil {
		err = checkRows("Scaled: predictions on "+p.Name, p.Probabilities, p.Len(), p.Classes)
	}
	if err != nil {
		return nil, err
	}
	return c.scaled(p), nil
}

// scaled requires a valid calibration and valid predictions.
func (c *Calibration) scaled(p *Predictions) *Predictions {
	s := *p
	s.Probabilities, s.Confidence = make([]float64, len(p.Probabilities)), make([]float64, p.Len())
	for n := range s.Confidence {
		class, most := p.Guess(n)
		row, sum := s.row(n), 0.0
		for k, v := range p.row(n) {
			row[k] = math.Pow(v/most, c.Exponent)
			sum += row[k]
		}
		for k := range row {
			row[k] /= sum
		}
		s.Confidence[n] = row[class]
	}
	return &s
}

var (
	scaledLikelihoodScore = Score{
		Name: "nllScaled", Title: "NLL, scaled", Format: "%.4f", Needs: NeedsLabels | NeedsScaling,
		Meaning: "The negative log likelihood of the calibrated probabilities, which answers have. Lower is better.",
		Of:      func(c Case) (float64, error) { return c.Calibration.scaled(c.In).likelihood(), nil },
	}
	scaledECEScore = Score{
		Name: "eceScaled", Title: "ECE, scaled", Format: "%.4f", Needs: NeedsLabels | NeedsScaling,
		Meaning: "The expected calibration error of the calibrated probabilities. Lower is better.",
		Of: func(c Case) (float64, error) {
			return calibrationError(equalWidth(c.Calibration.scaled(c.In).outcomes())), nil
		},
	}
)
