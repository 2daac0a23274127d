package evaluate

import (
	"cmp"
	"math"
	"slices"

	"github.com/pkg/errors"
)

// Level is the share of fresh examples that, in scores and figures, prediction sets should cover
// and the test of familiarity should accept.
const Level = 0.95

// calibrationPoints bounds what a Calibration keeps: 1000 thresholds change a level by at most 0.1
// %, on the safe side.
const calibrationPoints = 1000

// maxExamples bounds the number of examples that a file may claim, so that ranks fit an int.
const maxExamples = 1 << 40

// Calibration is what held-out data of the familiar kind say about predictions: it gives thresholds
// at any level. It can be written as JSON and read back without loss, and keeps at most 1000
// numbers of each kind, whatever the number of examples.
//
// Source: split conformal prediction (Papadopoulos et al. 2002; Vovk, Gammerman, Shafer 2005;
// Lei et al. 2018). If the n held-out examples and a fresh one are exchangeable, the
// fresh one's strangeness is at most the ceil((n+1) level)-th smallest of the held-out ones with a
// probability of at least level, whatever the network and the distribution, and however small n.
// Ties and the numbers left out only add to that probability.
//
// It requires held-out examples that played no part in training or in any choice, predicted with
// the same samples as the fresh ones. The guarantee is over held-out and fresh examples together,
// not for one class or one image: with one set of n held-out examples, coverage is off the level by
// about sqrt(level (1 - level) / n), to either side. It does not hold for fresh examples from
// elsewhere: other cameras, other mixtures of classes, adversaries, another set of samples.
type Calibration struct {
	Data     string `json:"data"`     // name of the held-out data
	Examples int    `json:"examples"` // n
	Classes  int    `json:"classes"`
	Samples  int    `json:"samples"` // of the posterior, with which the examples were predicted
	// Label are the probabilities of the examples' labels, falling, Entropy the entropies in nats,
	// rising. Number j of m has rank ceil((j+1) n/m) among all n.
	Label   []float64 `json:"label"`
	Entropy []float64 `json:"entropy"`
}

// Calibrate returns what predictions on held-out data with labels say. It fails when labels are
// unknown or do not fit.
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
	return &Calibration{
		Data: p.Name, Examples: p.Len(), Classes: p.Classes, Samples: p.Samples,
		Label: quantileSubset(label), Entropy: quantileSubset(slices.Sorted(slices.Values(p.Entropy))),
	}, nil
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

// rank is the rank, from the least strange, of the one of n held-out examples that gives a level's
// threshold; it is above n where there are too few.
func rank(n int, level float64) int {
	return max(1, int(math.Ceil(float64(n+1)*level-1e-9)))
}

// place is the index of the number of a rank, or of the next higher rank kept.
func (c *Calibration) index(rank int) int {
	m := len(c.Label)
	return (rank*m+c.Examples-1)/c.Examples - 1
}

// Supports reports whether there are enough held-out examples for a level, at least
// level / (1 - level): 19 for 95 %, 99 for 99 %.
func (c *Calibration) Supports(level float64) bool {
	return level > 0 && level < 1 && rank(c.Examples, level) <= c.Examples
}

func (c *Calibration) checkLevel(what string, level float64) error {
	if err := c.check(what); err != nil {
		return err
	}
	if !(level > 0 && level < 1) {
		return errors.Errorf("evaluate: %s: got level %v, want one between 0 and 1", what, level)
	}
	if !c.Supports(level) {
		return errors.Errorf("evaluate: %s: got %d held-out examples of %s, want at least %.0f for level %v",
			what, c.Examples, c.Data, math.Ceil(level/(1-level)-1e-9), level)
	}
	return nil
}

func (c *Calibration) check(what string) error {
	m := min(c.Examples, calibrationPoints)
	if c.Examples > maxExamples {
		return errors.Errorf("evaluate: %s: calibration of %d examples, want at most %d", what, c.Examples, maxExamples)
	}
	if c.Classes < 2 || m < 1 || len(c.Label) != m || len(c.Entropy) != m {
		return errors.Errorf("evaluate: %s: calibration of %d examples of %d classes has %d and %d numbers, want %d of each",
			what, c.Examples, c.Classes, len(c.Label), len(c.Entropy), m)
	}
	for j := range m {
		if !(c.Label[j] >= 0 && c.Label[j] <= 1+rowTolerance) || !(c.Entropy[j] >= 0) ||
			j > 0 && (c.Label[j] > c.Label[j-1] || c.Entropy[j] < c.Entropy[j-1]) {
			return errors.Errorf("evaluate: %s: calibration: number %d is the label's probability %v and the entropy %v, "+
				"want them sorted", what, j, c.Label[j], c.Entropy[j])
		}
	}
	return nil
}

// InDistribution reports for each entropy, in nats, whether it is no higher than is usual for
// familiar images: a fresh familiar image is accepted with a probability of at least rate, under
// the conditions of Calibration (Bates et al. 2023, testing for outliers with conformal p-values).
// It promises nothing about the share of images of another kind that are refused. It fails when
// rate is not between 0 and 1, when there are too few held-out examples for it (see Supports), and
// for a NaN.
func (c *Calibration) InDistribution(entropy []float64, rate float64) ([]bool, error) {
	threshold, err := c.EntropyThreshold(rate)
	if err != nil {
		return nil, err
	}
	familiar := make([]bool, len(entropy))
	for n, e := range entropy {
		if math.IsNaN(e) {
			return nil, errors.Errorf("evaluate: Familiar: entropy %d is NaN, want a number", n)
		}
		familiar[n] = e <= threshold
	}
	return familiar, nil
}

// EntropyThreshold returns the highest entropy, in nats, that Familiar accepts. It fails as
// InDistribution does.
func (c *Calibration) EntropyThreshold(rate float64) (float64, error) {
	if err := c.checkLevel("Familiar", rate); err != nil {
		return 0, err
	}
	return c.Entropy[c.index(rank(c.Examples, rate))], nil
}

var (
	inDistributionScore = Score{
		Name: "inDistribution", Title: "in distribution, {in}", Format: "%.3f", Needs: NeedsCalibration,
		Meaning: "The share of {in} classified as in distribution by its entropy, at a level of 95 %.",
		Of:      func(c Case) (float64, error) { return c.inDistribution(c.In) },
	}
	inDistributionOutScore = Score{
		Name: "inDistributionOut", Title: "in distribution, {out}", Format: "%.3f", Needs: NeedsCalibration | NeedsOut,
		Meaning: "The share of {out} classified as in distribution; less is better.",
		Of:      func(c Case) (float64, error) { return c.inDistribution(c.Out) },
	}
)

func (c Case) inDistribution(p *Predictions) (float64, error) {
	accepted, err := c.Calibration.InDistribution(p.Entropy, Level)
	count := 0.0
	for _, a := range accepted {
		if a {
			count++
		}
	}
	return count / float64(p.Len()), err
}
