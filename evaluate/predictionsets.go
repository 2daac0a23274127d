package evaluate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pkg/errors"
)

// PredictionSets returns the conformal prediction set of each row of the probabilities [N K]: the
// classes whose probability is at least the threshold from the held-out labels, the most probable
// first. The label of a new example is in its set with a probability of at least level, under the
// conditions of Calibration. If the probabilities are correct, no other sets with this coverage are
// smaller on average (Sadinle, Lei, Wasserman 2019, least ambiguous set-valued classifiers). A set
// can be empty, typically for an out-of-distribution image.
//
// It returns an error if level is not between 0 and 1, if there are too few held-out examples for
// it (see Supports), so that only sets of all classes would have the coverage, and if a row is not
// a distribution over the classes.
func (c *Calibration) PredictionSets(probabilities []float64, classes int, level float64) ([][]int, error) {
	threshold, err := c.ProbabilityThreshold(level)
	if err != nil {
		return nil, err
	}
	if classes != c.Classes {
		return nil, errors.Errorf("evaluate: PredictionSets: must have the calibration's %[2]d classes, got %[1]d", classes, c.Classes)
	}
	if err := checkRows("PredictionSets", probabilities, len(probabilities)/classes, classes); err != nil {
		return nil, err
	}
	sets := make([][]int, len(probabilities)/classes)
	for n := range sets {
		row := probabilities[n*classes : (n+1)*classes]
		for k, p := range row {
			if p >= threshold {
				sets[n] = append(sets[n], k)
			}
		}
		slices.SortStableFunc(sets[n], func(a, b int) int { return cmp.Compare(row[b], row[a]) })
	}
	return sets, nil
}

// ProbabilityThreshold returns the lowest probability of a class in a prediction set, or an error
// of PredictionSets.
func (c *Calibration) ProbabilityThreshold(level float64) (float64, error) {
	if err := c.checkLevel("PredictionSets", level); err != nil {
		return 0, err
	}
	return c.Label[c.index(rank(c.Examples, level))], nil
}

// AllClasses returns why prediction sets at a level have all classes for every image, and what to
// do, or "" if they do not. They do if the threshold is a probability of 0, which more than 1 -
// level of the held-out labels have.
func (c *Calibration) AllClasses(level float64) (reason string) {
	if threshold, err := c.ProbabilityThreshold(level); err != nil || threshold > 0 {
		return ""
	}
	zeros := 0
	for _, p := range c.Label {
		if p == 0 {
			zeros++
		}
	}
	reason = fmt.Sprintf("prediction sets at level %g have all %d classes, since %.1f %% of the held-out labels have a predicted probability of 0: ",
		level, c.Classes, 100*float64(zeros)/float64(len(c.Label)))
	for percent := 99; percent >= 50; percent-- {
		lower := float64(percent) / 100
		if threshold, err := c.ProbabilityThreshold(lower); err == nil && threshold > 0 {
			return reason + fmt.Sprintf("use a level of at most %g, or a method that is less certain of its mistakes", lower)
		}
	}
	return reason + "use a method that is less certain of its mistakes"
}

var (
	setCoverageScore = Score{
		Name: "setCoverage", Title: "coverage of 95 % sets", Format: "%.3f", Needs: NeedsLabels | NeedsCalibration,
		Meaning: "The fraction of {in} whose conformal prediction set at level 95 % contains the label; 95 % are expected.",
		Of: func(c Case) (float64, error) {
			sets, err := c.predictionSets()
			covered := 0.0
			for n, set := range sets {
				if slices.Contains(set, int(c.In.Labels[n])) {
					covered++
				}
			}
			return covered / float64(c.In.Len()), err
		},
	}
	setSizeScore = Score{
		Name: "setSize", Title: "size of 95 % sets", Format: "%.2f", Needs: NeedsCalibration,
		Meaning: "The mean number of classes in the conformal prediction sets at level 95 %. Lower is better.",
		Of: func(c Case) (float64, error) {
			sets, err := c.predictionSets()
			size := 0.0
			for _, set := range sets {
				size += float64(len(set))
			}
			return size / float64(c.In.Len()), err
		},
	}
)

func (c Case) predictionSets() ([][]int, error) {
	return c.Calibration.PredictionSets(c.In.Probabilities, c.In.Classes, Level)
}
