package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat/distuv"
)

// RiskConfidence is the default confidence of certified risks, which scores and pages use.
const RiskConfidence = 0.9

// DefaultRisks are the risks that scores and pages list.
func DefaultRisks() []float64 { return []float64{0.01, 0.02, 0.05} }

// starts are the confidence thresholds at which Certify begins to test, in descending order. They
// must not depend on the held-out examples. The last one answers all images.
var starts = []float64{0.99, 0.9, 0.6, 0}

// Certificate is a confidence threshold with a guarantee on the selective risk: with a probability
// of at least Confidence over the held-out examples, at most a fraction Risk of the images whose
// confidence is at least Threshold are classified wrongly. All other images should be referred to a
// person.
type Certificate struct {
	Risk       float64 `json:"risk"`
	Confidence float64 `json:"confidence"`
	// Certified reports whether there is such a threshold. Otherwise no image is answered.
	Certified bool `json:"certified"`
	// Threshold is the lowest confidence of an image that is answered. It is the confidence of the
	// posterior predictive, which Calibration.Scaled has not changed.
	Threshold float64 `json:"threshold"`
	// Images is the number of held-out examples, or of their groups if they have any. Answered is
	// the number of those whose confidence is at least Threshold, and Wrong the number of errors
	// among the answered ones.
	Images   int `json:"images"`
	Answered int `json:"answered"`
	Wrong    int `json:"wrong"`
	// Needed is the minimum number of answered examples, all without an error, for which a
	// threshold can be certified, at most 2^31 - 1.
	Needed int `json:"needed"`
	// Grouped reports that the examples have groups, so that Images, Answered, Wrong and Needed
	// are numbers of groups.
	Grouped bool `json:"-"`
}

// unit returns what a certificate counts, for texts.
func (c Certificate) unit() string {
	if c.Grouped {
		return "groups"
	}
	return "images"
}

// Answers reports whether an image with the given confidence is answered rather than referred to a
// person.
func (c Certificate) Answers(confidence float64) bool {
	return c.Certified && confidence >= c.Threshold
}

// From returns the threshold for a table: "any" if all images are answered, and "none" if none are,
// with the numbers of held-out images that are needed and that there are, if these are fewer.
func (c Certificate) From() string {
	switch {
	case c.Certified && c.Threshold == 0:
		return "any"
	case c.Certified:
		return fmt.Sprintf("%.4f", c.Threshold)
	case c.Images < c.Needed:
		return fmt.Sprintf("none: needs %d %s, has %d", c.Needed, c.unit(), c.Images)
	}
	return "none"
}

// Why returns the reason why no image is answered, or "" if the certificate is given.
func (c Certificate) Why() string {
	switch {
	case c.Certified:
		return ""
	case c.Images < c.Needed && c.Grouped:
		return fmt.Sprintf("that needs held-out images of at least %d groups, and there are %d groups", c.Needed, c.Images)
	case c.Images < c.Needed:
		return fmt.Sprintf("that needs at least %d held-out images, and there are %d", c.Needed, c.Images)
	case c.Grouped:
		return fmt.Sprintf("too many images, one of each of the %d held-out groups, are classified wrongly", c.Images)
	}
	return fmt.Sprintf("too many of the %d held-out images are classified wrongly", c.Images)
}

// String returns the certificate in words, as in "answers 84 % of images with at most 2 % errors".
func (c Certificate) String() string {
	if !c.Certified {
		return fmt.Sprintf("no answers with at most %.4g %% errors can be certified: %s", 100*c.Risk, c.Why())
	}
	return fmt.Sprintf("answers %.0f %% of images with at most %.4g %% errors", 100*float64(c.Answered)/float64(c.Images), 100*c.Risk)
}

// Certify returns the lowest confidence threshold with a certified selective risk. Let R(t) be the
// probability that a new image whose confidence is at least t is classified wrongly. If the n
// held-out examples are independent draws from the distribution of the new ones, then R(Threshold)
// is at most risk with a probability of at least confidence over these draws, for any network and
// any distribution.
//
// The probability of being answered and wrong falls with t; R(t), which matters to a user, need
// not. The method is therefore not a bound on a monotone risk (Bates et al. 2021,
// distribution-free, risk-controlling prediction sets), but Learn then Test (Angelopoulos, Bates,
// Candès, Jordan, Lei 2021): the hypotheses R(t) > risk are tested with control of the family-wise
// error. Given that m examples have a confidence of at least t, their number of errors is binomial
// with probability R(t), which gives an exact p-value, riskPValue. The hypotheses are tested in a
// fixed sequence, from high thresholds to low ones, down to the first that is not rejected. At high
// thresholds there are too few examples for a rejection, and a start chosen after looking at the
// examples would not be fixed. There are therefore four starts, at confidences of .99, .9, .6 and
// 0, each with a quarter of the level 1 - confidence. A sequence that reaches the next start,
// because all hypotheses since its own start were rejected, adds the level of that start to its own
// (the fallback procedure, Wiens and Dmitrienko 2005).
//
// It returns an error if risk or confidence is not between 0 and 1.
func (c *Calibration) Certify(risk, confidence float64) (Certificate, error) {
	const what = "Certify"
	if !(risk > 0 && risk < 1) || !(confidence > 0 && confidence < 1) {
		return Certificate{}, errors.Errorf("evaluate: %s: risk and confidence must be between 0 and 1, got %v and %v", what, risk, confidence)
	}
	if err := c.check(what); err != nil {
		return Certificate{}, err
	}
	var confidences []float64
	var wrong []bool
	for i, rank := range c.Rank {
		if c.Single == nil || c.Single[i] {
			confidences, wrong = append(confidences, c.Confidence[i]), append(wrong, rank != 1)
		}
	}
	result := certify(confidences, wrong, risk, confidence, riskPValue)
	result.Grouped = c.Single != nil
	return result, nil
}

// certify is Certify with the p-values of any function.
func certify(confidences []float64, wrong []bool, risk, confidence float64, pValue func(m, wrong int, risk float64) float64) Certificate {
	n, delta := len(confidences), 1-confidence
	each := delta / float64(len(starts))
	needed := math.Ceil(math.Log(each)/math.Log1p(-risk) - 1e-9)
	result := Certificate{Risk: risk, Confidence: confidence, Images: n, Needed: int(min(needed, math.MaxInt32))}
	order := indices(n)
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(confidences[b], confidences[a]) })
	// Between the confidences of two successive examples the p-value is constant, so that tests at
	// the confidences and at the starts cover every threshold.
	thresholds := slices.Clone(starts)
	for _, v := range confidences {
		if v < starts[0] {
			thresholds = append(thresholds, v)
		}
	}
	slices.SortFunc(thresholds, func(a, b float64) int { return cmp.Compare(b, a) })
	thresholds = slices.Compact(thresholds)
	answered, mistakes, level := 0, 0, 0.0
	for _, t := range thresholds {
		for answered < n && confidences[order[answered]] >= t {
			if wrong[order[answered]] {
				mistakes++
			}
			answered++
		}
		if slices.Contains(starts, t) {
			level += each
		}
		if level == 0 {
			continue
		}
		if pValue(answered, mistakes, risk) > level {
			level = 0
			continue
		}
		result.Certified, result.Threshold, result.Answered, result.Wrong = true, t, answered, mistakes
	}
	return result
}

// riskPValue returns a p-value for the hypothesis that the probability of an error is above risk,
// if wrong of m independent examples are errors: the probability that a binomial variable of m
// trials with probability risk is at most wrong. It is 1 for m = 0.
//
// For errors, which are 0 or 1, it is exact, and at most the Hoeffding-Bentkus p-value (Bates et
// al. 2021), which bounds the same probability for any loss between 0 and 1: more images can be
// answered with the same guarantee.
func riskPValue(m, wrong int, risk float64) float64 {
	if m == 0 {
		return 1
	}
	return distuv.Binomial{N: float64(m), P: risk}.CDF(float64(wrong))
}

// Selected is a Certificate with the fraction of test examples that it answers, and their error
// rate.
type Selected struct {
	Certificate
	// TestAnswered is the fraction of the test examples that are answered, and TestRisk the error
	// rate among these, which is absent without labels or answers.
	TestAnswered float64  `json:"testAnswered"`
	TestRisk     *float64 `json:"testRisk,omitzero"`
}

// Select certifies the risks of a case with its calibration, and applies the certificates to its
// in-distribution predictions. It returns nil without a calibration. The errors are as for Assess
// and Certify.
func Select(c Case) ([]Selected, error) {
	if err := c.check(); err != nil || c.Calibration == nil {
		return nil, err
	}
	risks := c.Risks
	if risks == nil {
		risks = DefaultRisks()
	}
	var right []bool
	if c.In.Labels != nil {
		var err error
		if right, err = c.In.Correct(); err != nil {
			return nil, err
		}
	}
	var all []Selected
	for _, risk := range risks {
		certificate, err := c.Calibration.Certify(risk, cmp.Or(c.RiskConfidence, RiskConfidence))
		if err != nil {
			return nil, err
		}
		answered, wrong := 0, 0
		for n := range c.In.Len() {
			if _, confidence := c.In.Guess(n); certificate.Answers(confidence) {
				answered++
				if right != nil && !right[n] {
					wrong++
				}
			}
		}
		s := Selected{Certificate: certificate, TestAnswered: float64(answered) / float64(c.In.Len())}
		if answered > 0 && right != nil {
			s.TestRisk = new(float64(wrong) / float64(answered))
		}
		all = append(all, s)
	}
	return all, nil
}
