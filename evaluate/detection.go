package evaluate

import (
	"cmp"
	"fmt"
	"slices"
)

// Detection measures how well a score separates out-of-distribution from in-distribution examples.
// The positive class is out of distribution, as in OpenOOD (Zhang et al. 2023), and higher scores
// mean more out of distribution.
type Detection struct {
	// AUROC is the probability that an out-of-distribution example scores higher than an
	// in-distribution one, ties counting one half: the Mann-Whitney statistic by midranks, computed
	// in integers up to the last division.
	AUROC float64 `json:"auroc"`
	// AUPROut is the average precision sum_t (recall_t - recall_t-1) precision_t over the distinct
	// thresholds t, with out-of-distribution as the positive class; AUPRIn is the same with
	// in-distribution as the positive class and the score negated. It does not use trapezoids, as
	// OpenOOD does: they overestimate the area if many scores tie (Davis and Goadrich 2006), such
	// as confidences of exactly 1.
	AUPROut float64 `json:"auprOut"`
	AUPRIn  float64 `json:"auprIn"`
	// FPR95 is the false positive rate at a true positive rate of 95 %: the fraction of
	// in-distribution examples with score >= t, where t is the largest threshold that at least 95 %
	// of the out-of-distribution examples reach. This is OpenOOD's convention. Papers whose
	// positive class is in-distribution report FPR95In under the same name.
	FPR95 float64 `json:"fpr95"`
	// FPR95In is the same with in-distribution as the positive class and the score negated: the
	// fraction of out-of-distribution examples that is accepted where at least 95 % of the
	// in-distribution ones are.
	FPR95In float64 `json:"fpr95In"`
}

// String formats the figures and the positive class.
func (d Detection) String() string {
	return fmt.Sprintf("AUROC %.4f, AUPR-out %.4f, AUPR-in %.4f, FPR95 %.4f (positive class: out of distribution)",
		d.AUROC, d.AUPROut, d.AUPRIn, d.FPR95)
}

// Detect computes the Detection of scores of in-distribution and out-of-distribution examples. It
// returns an error if one side is empty or has a NaN; infinite scores are allowed.
func Detect(in, out []float64) (Detection, error) {
	if err := checkScores("Detect", "in", in); err != nil {
		return Detection{}, err
	}
	if err := checkScores("Detect", "out", out); err != nil {
		return Detection{}, err
	}
	groups := tieGroups(in, out)
	d := Detection{AUROC: auroc(groups, len(in), len(out)), FPR95: fpr95(groups, len(in), len(out))}
	d.AUPROut = averagePrecision(groups, len(out))
	slices.Reverse(groups)
	for i := range groups {
		groups[i].in, groups[i].out = groups[i].out, groups[i].in
	}
	d.AUPRIn, d.FPR95In = averagePrecision(groups, len(in)), fpr95(groups, len(out), len(in))
	return d, nil
}

var (
	aurocScore = withCurve(detectionScore("auroc", "AUROC", "%.4f",
		"The probability that an example of {out} has a higher uncertainty than one of {in}. Higher is better.",
		func(d Detection) float64 { return d.AUROC }),
		Curve{"false positive rate (in distribution)", "true positive rate (out of distribution)", roc})
	fpr95Score = detectionScore("fpr95", "FPR95", "%.3f",
		"The fraction of {in} taken for out of distribution at the threshold that detects 95 % of {out}. Lower is better.",
		func(d Detection) float64 { return d.FPR95 })
	auprOutScore = detectionScore("auprOut", "AUPR out", "%.4f",
		"The average precision with {out} as the positive class; by chance, its fraction of the examples. Higher is better.",
		func(d Detection) float64 { return d.AUPROut })
	auprInScore = detectionScore("auprIn", "AUPR in", "%.4f",
		"The average precision with {in} as the positive class; by chance, its fraction of the examples. Higher is better.",
		func(d Detection) float64 { return d.AUPRIn })
)

// detectionScore returns the row of the table of scores for a figure of the Detection with the
// case's OOD score.
func detectionScore(name, title, format, meaning string, of func(Detection) float64) Score {
	return Score{
		Name: name, Title: title, Format: format, Needs: NeedsOut, Meaning: meaning,
		Of: func(c Case) (float64, error) {
			score, err := oodScoreByName(c.OODScore)
			if err != nil {
				return 0, err
			}
			d, err := Detect(score.Of(c.In), score.Of(c.Out))
			return of(d), err
		},
	}
}

func withCurve(s Score, curve Curve) Score {
	s.Curve = &curve
	return s
}

// roc returns the receiver operating characteristic: for each threshold of the case's OOD score,
// from the highest to the lowest, the fractions of In and Out that reach it.
func roc(c Case) (in, out []float64, err error) {
	score, err := oodScoreByName(c.OODScore)
	if err != nil {
		return nil, nil, err
	}
	in, out = []float64{0}, []float64{0}
	var reached tieGroup
	for _, g := range tieGroups(score.Of(c.In), score.Of(c.Out)) {
		reached.in += g.in
		reached.out += g.out
		in = append(in, float64(reached.in)/float64(c.In.Len()))
		out = append(out, float64(reached.out)/float64(c.Out.Len()))
	}
	return in, out, nil
}

// tieGroup has the numbers of in- and out-of-distribution examples with the same score.
type tieGroup struct{ in, out int64 }

// tieGroups returns one group per distinct score, in descending order.
func tieGroups(in, out []float64) []tieGroup {
	type scored struct {
		score float64
		group tieGroup
	}
	all := make([]scored, 0, len(in)+len(out))
	for _, score := range in {
		all = append(all, scored{score, tieGroup{in: 1}})
	}
	for _, score := range out {
		all = append(all, scored{score, tieGroup{out: 1}})
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var groups []tieGroup
	for i, s := range all {
		if i == 0 || s.score != all[i-1].score {
			groups = append(groups, tieGroup{})
		}
		groups[len(groups)-1].in += s.group.in
		groups[len(groups)-1].out += s.group.out
	}
	return groups
}

func auroc(groups []tieGroup, in, out int) float64 {
	var outAbove, twice int64 // twice the number of pairs with the out-of-distribution example above
	for _, g := range groups {
		twice += g.in * (2*outAbove + g.out)
		outAbove += g.out
	}
	return float64(twice) / 2 / float64(in) / float64(out)
}

func fpr95(groups []tieGroup, in, out int) float64 {
	var truePositives, falsePositives int64
	for _, g := range groups {
		truePositives += g.out
		falsePositives += g.in
		if 100*truePositives >= 95*int64(out) {
			break
		}
	}
	return float64(falsePositives) / float64(in)
}

// averagePrecision returns the average precision with out as the positive class. The groups are in
// descending order of the score.
func averagePrecision(groups []tieGroup, positives int) float64 {
	var truePositives, predicted int64
	sum := 0.0
	for _, g := range groups {
		truePositives += g.out
		predicted += g.in + g.out
		sum += float64(g.out) * float64(truePositives) / float64(predicted)
	}
	return sum / float64(positives)
}
