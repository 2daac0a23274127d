package evaluate

import (
	"math"

	"github.com/pkg/errors"
)

// rowTolerance is the largest deviation of a row's sum from 1. It allows the rounding of a float32
// softmax over a few hundred classes, and is far below the deviation of log-probabilities or
// logits.
const rowTolerance = 1e-4

// checkRows returns an error for the first row of the [N K] probabilities that is not a
// distribution.
func checkRows[T float32 | float64](what string, probabilities []T, examples, classes int) error {
	if classes < 2 {
		return errors.Errorf("evaluate: %s: must have at least 2 classes, got %d", what, classes)
	}
	if examples < 1 {
		return errors.Errorf("evaluate: %s: must have at least 1 example, got %d", what, examples)
	}
	if len(probabilities) != examples*classes {
		return errors.Errorf("evaluate: %s: must have %[3]d examples x %[4]d classes = %[5]d probabilities, got %[2]d",
			what, len(probabilities), examples, classes, examples*classes)
	}
	for n := range examples {
		sum := 0.0
		for k, value := range probabilities[n*classes : (n+1)*classes] {
			p := float64(value)
			if !(p >= 0 && p <= 1+rowTolerance) {
				return errors.Errorf("evaluate: %s: example %d, class %d: probability must be in [0, 1], got %v", what, n, k, value)
			}
			sum += p
		}
		if math.Abs(sum-1) > rowTolerance {
			return errors.Errorf("evaluate: %s: example %d: probabilities must sum to 1 within %[4]v, got %[3]v", what, n, sum, rowTolerance)
		}
	}
	return nil
}

// checkLabelled checks [N K] probabilities against N labels.
func checkLabelled(what string, probabilities []float64, labels []int32, classes int) error {
	if err := checkRows(what, probabilities, len(labels), classes); err != nil {
		return err
	}
	for n, label := range labels {
		if label < 0 || int(label) >= classes {
			return errors.Errorf("evaluate: %s: example %d: label must be 0 or more and below %[4]d, got %[3]d", what, n, label, classes)
		}
	}
	return nil
}

// checkScores returns an error if there are no scores or one is NaN. Infinite scores rank first or
// last.
func checkScores(what, name string, scores []float64) error {
	if len(scores) == 0 {
		return errors.Errorf("evaluate: %s: %s must have at least 1 score, got none", what, name)
	}
	for i, score := range scores {
		if math.IsNaN(score) {
			return errors.Errorf("evaluate: %s: %s: score %d is NaN", what, name, i)
		}
	}
	return nil
}

// largest returns the index and value of the largest element, the first of equals.
func largest(row []float64) (index int, value float64) {
	for k, p := range row {
		if p > row[index] {
			index = k
		}
	}
	return index, row[index]
}

// entropy returns -sum_k p_k ln p_k in nats, with 0 ln 0 = 0.
func entropy(row []float64) float64 {
	h := 0.0
	for _, p := range row {
		if p > 0 {
			h -= p * math.Log(p)
		}
	}
	return h
}
