package evaluate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// ClassScores are the scores of the examples of one class.
type ClassScores struct {
	Class    int     `json:"index"`  // its number
	Examples int     `json:"images"` // with this label
	Recall   float64 `json:"recall"` // fraction that is classified correctly
	// Precision is the fraction of the examples classified as this class that belong to it, 0 if
	// there are none, and F1 the harmonic mean of precision and recall.
	Precision float64 `json:"precision"`
	F1        float64 `json:"f1"`
	// Coverage is the fraction of the class's examples whose prediction set at Level contains the
	// class, and SetSize the mean number of classes in these sets. Both are nil without a
	// calibration for Level.
	Coverage *float64 `json:"coverage,omitzero"`
	SetSize  *float64 `json:"setSize,omitzero"`
	// Threshold is the class's threshold for class-conditional sets, and nil for other sets. If its
	// field Marginal is true, the class's coverage is not guaranteed.
	Threshold *ClassThreshold `json:"threshold,omitzero"`
}

// ByClass returns the scores of each class that occurs, in the order of the classes, and nil
// without labels. Prediction sets have their coverage on average over all images, and a class may
// have much less, unless Case.Sets has PerClass. The errors are as for Assess.
func ByClass(c Case) ([]ClassScores, error) {
	if err := c.check(); err != nil || c.In.Labels == nil {
		return nil, err
	}
	right, err := c.In.Correct()
	if err != nil {
		return nil, err
	}
	all := make([]ClassScores, c.In.Classes)
	guessed := make([]int, c.In.Classes)
	covered, size := make([]int, c.In.Classes), make([]int, c.In.Classes)
	var sets [][]int
	var thresholds []ClassThreshold
	if setCoverageScore.Applies(c) {
		by, err := c.Calibration.Sets(Level, c.Sets)
		if err != nil {
			return nil, err
		}
		if sets, err = by.Of(c.In.Probabilities, c.In.Classes); err != nil {
			return nil, err
		}
		thresholds = by.Thresholds
	}
	for n, label := range c.In.Labels {
		all[label].Examples++
		guess, _ := c.In.Guess(n)
		guessed[guess]++
		if right[n] {
			all[label].Recall++ // counts, divided below
		}
		if sets != nil {
			size[label] += len(sets[n])
			if slices.Contains(sets[n], int(label)) {
				covered[label]++
			}
		}
	}
	for k := range all {
		count := float64(all[k].Examples)
		all[k].Class = k
		// 2 right/(images + guesses) is the harmonic mean; 0/0 of a class without images is
		// dropped.
		all[k].Precision, all[k].F1 = all[k].Recall/float64(max(guessed[k], 1)), 2*all[k].Recall/(count+float64(guessed[k]))
		all[k].Recall /= count
		if thresholds != nil {
			all[k].Threshold = &thresholds[k]
		}
		if sets != nil {
			all[k].Coverage, all[k].SetSize = new(float64(covered[k])/count), new(float64(size[k])/count)
		}
	}
	return slices.DeleteFunc(all, func(s ClassScores) bool { return s.Examples == 0 }), nil
}

// Ranking has scores of how well the probability of a class ranks the examples of the class before
// all others. They do not depend on a threshold, nor on how far the probabilities are off.
type Ranking struct {
	// AUROC is the probability that an example of the class has a higher probability of the class
	// than one of another class; ties count half.
	AUROC float64 `json:"auroc"`
	// AveragePrecision is the area under the curve of precision and recall. Of a class that is a
	// fraction f of the examples it is about f by chance.
	AveragePrecision float64 `json:"averagePrecision"`
}

// RankingOf returns the ranking of a class. ok is false unless there are examples of the class and
// of others.
func RankingOf(p *Predictions, class int) (r Ranking, ok bool) {
	if p == nil || class < 0 || class >= p.Classes {
		return r, false
	}
	var own, others []float64
	for i, label := range p.Labels {
		probability := float64(p.row(i)[class])
		if int(label) == class {
			own = append(own, probability)
		} else {
			others = append(others, probability)
		}
	}
	if len(own) == 0 || len(others) == 0 {
		return r, false
	}
	groups := tieGroups(others, own)
	return Ranking{auroc(groups, len(others), len(own)), averagePrecision(groups, len(own))}, true
}

// WorstCovered returns the class with the lowest coverage, and of equals the one with the most
// examples. ok is false if no class has a coverage.
func WorstCovered(classes []ClassScores) (worst ClassScores, ok bool) {
	for _, s := range classes {
		if s.Coverage == nil {
			continue
		}
		if !ok || *s.Coverage < *worst.Coverage || *s.Coverage == *worst.Coverage && s.Examples > worst.Examples {
			worst, ok = s, true
		}
	}
	return worst, ok
}

// BelowChance reports whether the coverage of a class, the worst of the given number of classes, is
// so far below Level that chance explains it in less than one of 100 data sets, with Bonferroni's
// correction for the number of classes. heldOut is the number of examples that calibrated the sets.
// With rank k of their scores as threshold, sets contain the label with a probability that is
// distributed as Beta(k, heldOut+1-k), so the number of covered examples is beta-binomial.
func (s ClassScores) BelowChance(classes, heldOut int) bool {
	k := rank(heldOut, Level)
	if s.Coverage == nil || s.Examples == 0 || k > heldOut {
		return false
	}
	a, b, n := float64(k), float64(heldOut+1-k), float64(s.Examples)
	total := 0.0
	for x := range int(*s.Coverage*n+0.5) + 1 {
		covered := float64(x)
		choices := -math.Log(n+1) - mathext.Lbeta(covered+1, n-covered+1)
		total += math.Exp(choices + mathext.Lbeta(a+covered, b+n-covered) - mathext.Lbeta(a, b))
	}
	return total*float64(classes) < 0.01
}

// WorstRecalled returns the class whose recall is hardest to explain by chance, if all classes had
// the same. ok is false if chance explains it in more than one of 100 data sets: a binomial test,
// with Bonferroni's correction for the number of classes.
func WorstRecalled(classes []ClassScores) (least ClassScores, ok bool) {
	right, all := 0.0, 0.0
	for _, s := range classes {
		right += s.Recall * float64(s.Examples)
		all += float64(s.Examples)
	}
	lowest := 0.01 / float64(len(classes))
	for _, s := range classes {
		recalled := distuv.Binomial{N: float64(s.Examples), P: right / all}
		if p := recalled.CDF(s.Recall*float64(s.Examples) + 0.5); p < lowest {
			least, ok, lowest = s, true, p
		}
	}
	return least, ok
}

// worstCoverageScore is the lowest coverage of a class.
var worstCoverageScore = Score{
	Name: "setCoverageWorst", Title: "coverage, worst class", Format: "%.3f", Needs: NeedsLabels | NeedsCalibration,
	Meaning: "The coverage of 95 % sets on the images of the class of {in} where it is lowest. The sets promise 95 % only " +
		"on average over all classes, and the lowest of many classes with few images is lower by chance.",
	Of: func(c Case) (float64, error) {
		classes, err := ByClass(c)
		if err != nil {
			return 0, err
		}
		worst, _ := WorstCovered(classes)
		return *worst.Coverage, nil
	},
}
