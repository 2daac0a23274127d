package evaluate

import (
	"math"
	"slices"

	"github.com/pkg/errors"
)

// Level is the level of prediction sets, and the rate of accepted in-distribution examples, in
// scores and figures.
const Level = 0.95

// Calibration has scores of held-out in-distribution predictions. Conformal prediction sets, the
// test for in-distribution examples and certified risks are computed from them, at any level. It
// can be written as JSON and read back without loss.
//
// Source: split conformal prediction (Papadopoulos et al. 2002; Vovk, Gammerman, Shafer 2005; Lei
// et al. 2018). If the n held-out examples and a new one are exchangeable, the nonconformity score
// of the new one is at most the ceil((n+1) level)-th smallest of the held-out ones with a
// probability of at least level, for any network, any distribution and any n. Ties only increase
// that probability.
//
// The held-out examples must not have been used for training or any choice, and must be predicted
// with the same samples as the new ones. The guarantee is marginal, over held-out and new examples
// together, and does not hold for one class (see SetRule.PerClass) or one image: with one set of n
// held-out examples, coverage deviates from the level by about sqrt(level (1 - level) / n) in
// either direction. It does not hold under distribution shift: other cameras, other mixtures of
// classes, adversaries, another set of samples.
type Calibration struct {
	Data     string `json:"data"`     // name of the held-out data
	Examples int    `json:"examples"` // n
	Classes  int    `json:"classes"`
	Samples  int    `json:"samples"` // number of posterior samples that predicted the examples
	// Content is the SHA-256 of the held-out images and labels. Notes are set by the caller, for
	// example the origin of the images. Both may be empty.
	Content string            `json:"content,omitempty"`
	Notes   map[string]string `json:"notes,omitempty"`
	// Exponent is the power to which Scaled raises probabilities, to make them fit the held-out
	// examples: above 1 if the averages were too cautious, below 1 if they were too certain.
	// Prediction sets, in-distribution decisions and certified risks use the probabilities as they
	// were, so that their guarantees hold.
	Exponent float64 `json:"exponent"`
	HeldOut
	// Nonconformity has the nonconformity scores in ascending order, see OODScores. It is nil for
	// predictions of a run without a detector.
	Nonconformity []float64 `json:"nonconformity,omitempty"`
	// SelfTest is the result of testing the decisions; nil if they were not tested.
	SelfTest *SelfTest `json:"selfTest,omitempty"`
}

// Calibrate returns the Calibration of predictions on held-out data. It returns an error if labels
// are missing or out of range.
func Calibrate(p *Predictions) (*Calibration, error) {
	if err := p.check("Calibrate"); err != nil {
		return nil, err
	}
	if err := p.checkLabels("Calibrate"); err != nil {
		return nil, err
	}
	if p.Groups != nil && len(p.Groups) != p.Len() {
		return nil, errors.Errorf("evaluate: Calibrate: Groups must be nil or have one for each of %d examples, got %d", p.Len(), len(p.Groups))
	}
	kept := keptExamples(p.Len())
	c := &Calibration{
		Data: p.Name, Examples: len(kept), Classes: p.Classes, Samples: p.Samples,
		Exponent: fitExponent(p, kept), HeldOut: newHeldOut(p, kept),
	}
	if p.Nonconformity != nil {
		c.Nonconformity = make([]float64, len(kept))
		for i, example := range kept {
			c.Nonconformity[i] = p.Nonconformity[example]
		}
		slices.Sort(c.Nonconformity)
	}
	return c, nil
}

// rankTolerance is subtracted from (n+1) level, which rounding may put slightly above an integer.
const rankTolerance = 1e-9

// rank returns the rank of the threshold for a level among the nonconformity scores of n held-out
// examples, in ascending order from 1. It is above n if there are too few examples.
func rank(n int, level float64) int {
	return max(1, int(math.Ceil(float64(n+1)*level-rankTolerance)))
}

// Supports reports whether there are enough held-out examples for a level: at least
// level / (1 - level), which is 19 for 95 % and 99 for 99 %.
func (c *Calibration) Supports(level float64) bool {
	return level > 0 && level < 1 && rank(c.Examples, level) <= c.Examples
}

func (c *Calibration) checkLevel(what string, level float64) error {
	if err := c.check(what); err != nil {
		return err
	}
	if !(level > 0 && level < 1) {
		return errors.Errorf("evaluate: %s: level must be between 0 and 1, got %v", what, level)
	}
	if !c.Supports(level) {
		return errors.Errorf("evaluate: %s: level %[5]v needs at least %[4]d held-out examples, %[3]s has %[2]d",
			what, c.Examples, c.Data, NeededExamples(level), level)
	}
	return nil
}

func (c *Calibration) check(what string) error {
	if c.Classes < 2 || c.Examples < 1 || c.Examples > maxHeldOut {
		return errors.Errorf("evaluate: %s: calibration must have 2 or more classes and 1 to %[4]d examples, got %[3]d and %[2]d",
			what, c.Examples, c.Classes, maxHeldOut)
	}
	if c.Nonconformity != nil && len(c.Nonconformity) != c.Examples {
		return errors.Errorf("evaluate: %s: calibration must have a nonconformity score for each of %d examples, got %d", what, c.Examples, len(c.Nonconformity))
	}
	if err := c.checkExponent(what); err != nil {
		return err
	}
	if err := c.HeldOut.check(what, c.Examples, c.Classes); err != nil {
		return err
	}
	for j, score := range c.Nonconformity {
		if math.IsNaN(score) || math.IsInf(score, 0) || j > 0 && score < c.Nonconformity[j-1] {
			return errors.Errorf("evaluate: %s: calibration: nonconformity scores must be finite and ascending, got %[3]v at %[2]d", what, j, score)
		}
	}
	return c.SelfTest.check(what)
}

func (c *Calibration) checkExponent(what string) error {
	if !(c.Exponent >= 1/maxExponent && c.Exponent <= maxExponent) {
		return errors.Errorf("evaluate: %s: calibration: exponent must be from %[3]v to %[4]v, got %[2]v: calibrate again",
			what, c.Exponent, 1/maxExponent, maxExponent)
	}
	return nil
}

// checkMatches returns an error unless p has the classes and the number of samples that the
// calibration has.
func (c *Calibration) checkMatches(what string, p *Predictions) error {
	if c.Classes != p.Classes || c.Samples != p.Samples {
		return errors.Errorf("evaluate: %s: calibration and predictions must have the same samples and classes, got %d samples and %d classes, and %d and %d",
			what, c.Samples, c.Classes, p.Samples, p.Classes)
	}
	return nil
}

// Decides reports whether InDistribution can decide at a rate: whether the calibration has
// nonconformity scores of enough held-out examples.
func (c *Calibration) Decides(rate float64) bool { return c.Nonconformity != nil && c.Supports(rate) }

// InDistribution reports for each nonconformity score whether it is at most the threshold that
// accepts a new in-distribution image with a probability of at least rate, under the conditions of
// Calibration (Bates et al. 2023, testing for outliers with conformal p-values). It guarantees
// nothing about the fraction of out-of-distribution images that are detected; SelfTest measures
// this fraction on some kinds of images. It returns an error if rate is not between 0 and 1, if the
// calibration has no nonconformity scores, or too few for the rate (see Supports), and for a NaN.
func (c *Calibration) InDistribution(nonconformity []float64, rate float64) ([]bool, error) {
	threshold, err := c.NonconformityThreshold(rate)
	if err != nil {
		return nil, err
	}
	accepted := make([]bool, len(nonconformity))
	for n, score := range nonconformity {
		if math.IsNaN(score) {
			return nil, errors.Errorf("evaluate: InDistribution: nonconformity score %d is NaN", n)
		}
		accepted[n] = score <= threshold
	}
	return accepted, nil
}

// NonconformityThreshold returns the highest nonconformity score that InDistribution accepts. It
// has the errors of InDistribution.
func (c *Calibration) NonconformityThreshold(rate float64) (float64, error) {
	if err := c.checkLevel("InDistribution", rate); err != nil {
		return 0, err
	}
	if c.Nonconformity == nil {
		return 0, errors.Errorf("evaluate: InDistribution: %s was calibrated without nonconformity scores", c.Data)
	}
	return c.Nonconformity[rank(c.Examples, rate)-1], nil
}

// PValue returns the conformal p-value of a nonconformity score: the probability that a new
// in-distribution example has at least this score, (1 + m)/(n + 1) if m of the n held-out examples
// have. For an in-distribution example it is at most a with a probability of at most a. It is NaN
// for a NaN, and for a calibration without nonconformity scores.
func (c *Calibration) PValue(nonconformity float64) float64 {
	if math.IsNaN(nonconformity) || c.Nonconformity == nil {
		return math.NaN()
	}
	below, _ := slices.BinarySearch(c.Nonconformity, nonconformity)
	return float64(1+c.Examples-below) / float64(c.Examples+1)
}

var (
	inDistributionScore = Score{
		Name: "inDistribution", Title: "in distribution, {in}", Format: "%.3f", Needs: NeedsDetector,
		Meaning: "The fraction of {in} accepted as in distribution; 95 % are expected.",
		Of:      func(c Case) (float64, error) { return c.inDistribution(c.In) },
	}
	inDistributionOutScore = Score{
		Name: "inDistributionOut", Title: "in distribution, {out}", Format: "%.3f", Needs: NeedsDetector | NeedsOut,
		Meaning: "The fraction of {out} accepted as in distribution. Lower is better.",
		Of:      func(c Case) (float64, error) { return c.inDistribution(c.Out) },
	}
)

func (c Case) inDistribution(p *Predictions) (float64, error) {
	accepted, err := c.Calibration.InDistribution(p.Nonconformity, Level)
	return fraction(accepted), err
}
