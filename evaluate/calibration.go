package evaluate

import (
	"cmp"
	"math"
	"slices"

	"github.com/pkg/errors"
)

// Level is the level of prediction sets, and the rate of accepted in-distribution examples, in
// scores and figures.
const Level = 0.95

// calibrationPoints is the maximum number of quantiles that a Calibration keeps. 1000 change a
// level by at most 0.1 %, on the safe side.
const calibrationPoints = 1000

// maxExamples is the largest number of examples that a file may have, so that ranks fit an int.
const maxExamples = min(1<<40, math.MaxInt/(2*calibrationPoints))

// Calibration has the quantiles of held-out in-distribution predictions that conformal prediction
// sets and the test for in-distribution examples use as thresholds, at any level. It can be written
// as JSON and read back without loss, and keeps at most 1000 numbers of each kind for any number of
// examples.
//
// Source: split conformal prediction (Papadopoulos et al. 2002; Vovk, Gammerman, Shafer 2005; Lei
// et al. 2018). If the n held-out examples and a new one are exchangeable, the nonconformity score
// of the new one is at most the ceil((n+1) level)-th smallest of the held-out ones with a
// probability of at least level, for any network, any distribution and any n. Ties and omitted
// numbers only increase that probability.
//
// The held-out examples must not have been used for training or any choice, and must be predicted
// with the same samples as the new ones. The guarantee is marginal, over held-out and new examples
// together, and not for one class or one image: with one set of n held-out examples, coverage
// deviates from the level by about sqrt(level (1 - level) / n) in either direction. It does not
// hold under distribution shift: other cameras, other mixtures of classes, adversaries, another set
// of samples.
type Calibration struct {
	Data     string `json:"data"`     // name of the held-out data
	Examples int    `json:"examples"` // n
	Classes  int    `json:"classes"`
	Samples  int    `json:"samples"` // number of posterior samples that predicted the examples
	// Label has the predicted probabilities of the labels in descending order, Nonconformity the
	// nonconformity scores in ascending order, see OODScores; it is nil for predictions of a run
	// without a detector. Element j of m has rank ceil((j+1) n/m) among all n.
	Label         []float64 `json:"label"`
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
	label := make([]float64, p.Len())
	for n, l := range p.Labels {
		label[n] = p.row(n)[l]
	}
	slices.SortFunc(label, func(a, b float64) int { return cmp.Compare(b, a) })
	c := &Calibration{Data: p.Name, Examples: p.Len(), Classes: p.Classes, Samples: p.Samples, Label: quantileSubset(label)}
	if p.Nonconformity != nil {
		c.Nonconformity = quantileSubset(slices.Sorted(slices.Values(p.Nonconformity)))
	}
	return c, nil
}

// quantileSubset keeps at most calibrationPoints of sorted values, the last among them.
func quantileSubset(sorted []float64) []float64 {
	n, m := len(sorted), min(len(sorted), calibrationPoints)
	kept := make([]float64, m)
	for j := range kept {
		kept[j] = sorted[((j+1)*n+m-1)/m-1]
	}
	return kept
}

// rank returns the rank, in ascending order of nonconformity, of the held-out example of n whose
// score is the threshold for a level. It is above n if there are too few examples.
func rank(n int, level float64) int {
	return max(1, int(math.Ceil(float64(n+1)*level-1e-9)))
}

// index returns the index of the number with a rank, or with the next higher rank kept.
func (c *Calibration) index(rank int) int {
	m := len(c.Label)
	return (rank*m+c.Examples-1)/c.Examples - 1
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
		return errors.Errorf("evaluate: %s: level %[5]v needs at least %.0[4]f held-out examples, %[3]s has %[2]d",
			what, c.Examples, c.Data, math.Ceil(level/(1-level)-1e-9), level)
	}
	return nil
}

func (c *Calibration) check(what string) error {
	m := min(c.Examples, calibrationPoints)
	if c.Examples > maxExamples {
		return errors.Errorf("evaluate: %s: calibration must have at most %[3]d examples, got %[2]d", what, c.Examples, maxExamples)
	}
	if c.Classes < 2 || m < 1 || len(c.Label) != m || c.Nonconformity != nil && len(c.Nonconformity) != m {
		return errors.Errorf("evaluate: %s: calibration of %d examples of %d classes must have %[6]d of each kind of numbers, got %[4]d and %[5]d",
			what, c.Examples, c.Classes, len(c.Label), len(c.Nonconformity), m)
	}
	for j, label := range c.Label {
		if !(label >= 0 && label <= 1+rowTolerance) || j > 0 && label > c.Label[j-1] {
			return errors.Errorf("evaluate: %s: calibration: probabilities must be descending, got %[3]v at %[2]d", what, j, label)
		}
	}
	for j, score := range c.Nonconformity {
		if math.IsNaN(score) || math.IsInf(score, 0) || j > 0 && score < c.Nonconformity[j-1] {
			return errors.Errorf("evaluate: %s: calibration: nonconformity scores must be finite and ascending, got %[3]v at %[2]d", what, j, score)
		}
	}
	return c.SelfTest.check(what)
}

// Decides reports whether there are decisions about what is in distribution at a rate: whether the
// calibration has nonconformity scores, of enough held-out examples.
func (c *Calibration) Decides(rate float64) bool { return c.Nonconformity != nil && c.Supports(rate) }

// InDistribution reports for each nonconformity score whether it is at most the threshold that
// accepts a new in-distribution image with a probability of at least rate, under the conditions of
// Calibration (Bates et al. 2023, testing for outliers with conformal p-values). It guarantees
// nothing about the fraction of out-of-distribution images that are detected; SelfTest measures
// that on some. It returns an error if rate is not between 0 and 1, if the calibration has no
// nonconformity scores, or too few for the rate (see Supports), and for a NaN.
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

// NonconformityThreshold returns the highest nonconformity score that InDistribution accepts, or an
// error of InDistribution.
func (c *Calibration) NonconformityThreshold(rate float64) (float64, error) {
	if err := c.checkLevel("InDistribution", rate); err != nil {
		return 0, err
	}
	if c.Nonconformity == nil {
		return 0, errors.Errorf("evaluate: InDistribution: %s was calibrated without nonconformity scores", c.Data)
	}
	return c.Nonconformity[c.index(rank(c.Examples, rate))], nil
}

// PValue returns the conformal p-value of a nonconformity score: the probability that a new
// in-distribution example is at least as strange, (1 + m)/(n + 1) if m of the n held-out ones are.
// For an in-distribution example it is at most a with a probability of at most a. It is slightly
// larger than (1 + m)/(n + 1) if the calibration does not have all n scores.
func (c *Calibration) PValue(nonconformity float64) float64 {
	n, m := c.Examples, len(c.Nonconformity)
	below, _ := slices.BinarySearch(c.Nonconformity, nonconformity)
	least := 0 // of the scores that are below
	if below > 0 {
		least = (below*n + m - 1) / m
	}
	return float64(1+n-least) / float64(n+1)
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
	count := 0.0
	for _, a := range accepted {
		if a {
			count++
		}
	}
	return count / float64(p.Len()), err
}
