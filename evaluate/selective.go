package evaluate

import (
	"cmp"
	"slices"

	"github.com/pkg/errors"
)

// SelectiveRisk is the risk-coverage curve of a network that may abstain: Risk[i] is the error rate
// among the i+1 examples with the lowest uncertainty, a fraction Coverage[i] = (i+1)/N of all. If
// uncertainties tie, Risk is its expectation over the orders of the tied examples. AURC is the mean
// of Risk (Geifman, Uziel, El-Yaniv 2019). Lower is better.
type SelectiveRisk struct {
	Coverage, Risk []float64
	AURC           float64
}

// RiskCoverage returns the curve for each example's uncertainty, such as the predictive entropy or
// the negated confidence, and whether it is classified correctly. It returns an error for empty
// input, a NaN, or different lengths.
func RiskCoverage(uncertainty []float64, correct []bool) (SelectiveRisk, error) {
	if err := checkScores("RiskCoverage", "uncertainty", uncertainty); err != nil {
		return SelectiveRisk{}, err
	}
	if len(uncertainty) != len(correct) {
		return SelectiveRisk{}, errors.Errorf("evaluate: RiskCoverage: uncertainty and correct must have the same length, got %d and %d",
			len(uncertainty), len(correct))
	}
	total := len(uncertainty)
	order := indices(total)
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(uncertainty[a], uncertainty[b]) })
	s := SelectiveRisk{Coverage: make([]float64, total), Risk: make([]float64, total)}
	wrong := 0.0 // among the examples before this tie
	for begin, end := 0, 0; begin < total; begin = end {
		tied := 0.0
		for end = begin; end < total && uncertainty[order[end]] == uncertainty[order[begin]]; end++ {
			if !correct[order[end]] {
				tied++
			}
		}
		for i := begin; i < end; i++ {
			kept := float64(i + 1)
			expected := wrong + tied*float64(i+1-begin)/float64(end-begin)
			s.Coverage[i] = kept / float64(total)
			s.Risk[i] = expected / kept
			s.AURC += s.Risk[i] / float64(total)
		}
		wrong += tied
	}
	return s, nil
}

var aurcScore = Score{
	Name: "aurc", Title: "AURC", Format: "%.5f", Needs: NeedsLabels,
	Meaning: "The area under the risk-coverage curve: the error rate of the least uncertain examples, averaged over " +
		"all coverages (Geifman, Uziel, El-Yaniv 2019). Lower is better.",
	Of: func(c Case) (float64, error) {
		score, err := oodScoreByName(c.OODScore)
		if err != nil {
			return 0, err
		}
		correct, err := c.In.Correct()
		if err != nil {
			return 0, err
		}
		curve, err := RiskCoverage(score.Of(c.In), correct)
		return curve.AURC, err
	},
}

// Comparison compares a predictive distribution p with a reference q (Izmailov et al. 2021).
type Comparison struct {
	// Agreement is the fraction of examples for which both have the same most probable class (the
	// first of equals).
	Agreement float64 `json:"agreement"`
	// TotalVariation is 1/N sum_n 1/2 sum_k |p_nk - q_nk|, in [0, 1].
	TotalVariation float64 `json:"totalVariation"`
}

// Compare compares two predictive distributions, both [N K]. It returns an error for empty input,
// different lengths, or rows that are not distributions.
func Compare(p, q []float64, classes int) (Comparison, error) {
	if len(p) != len(q) {
		return Comparison{}, errors.Errorf("evaluate: Compare: p and q must have the same length, got %d and %d", len(p), len(q))
	}
	examples := len(p) / max(classes, 1)
	if err := checkRows("Compare", p, examples, classes); err != nil {
		return Comparison{}, err
	}
	if err := checkRows("Compare", q, examples, classes); err != nil {
		return Comparison{}, err
	}
	var c Comparison
	for n := range examples {
		begin, end := n*classes, (n+1)*classes
		bestP, _ := largest(p[begin:end])
		bestQ, _ := largest(q[begin:end])
		if bestP == bestQ {
			c.Agreement++
		}
		for k := begin; k < end; k++ {
			c.TotalVariation += max(p[k]-q[k], q[k]-p[k]) / 2
		}
	}
	c.Agreement /= float64(examples)
	c.TotalVariation /= float64(examples)
	return c, nil
}
