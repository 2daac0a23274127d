package evaluate

import (
	"math"

	"github.com/pkg/errors"
)

// rowTolerance is how far a row of probabilities may be from summing to 1: room for a float32
// softmax of a few hundred classes, and far below anything that log-probabilities or logits would
// give.
const rowTolerance = 1e-4

// checkRows reports the first row of the [N K] probabilities that is not a distribution.
func checkRows[T float32 | float64](what string, probabilities []T, examples, classes int) error {
	if classes < 2 {
		return errors.Errorf("evaluate: %s: %d classes, want at least 2", what, classes)
	}
	if examples < 1 {
		return errors.Errorf("evaluate: %s: %d examples, want at least 1", what, examples)
	}
	if len(probabilities) != examples*classes {
		return errors.Errorf("evaluate: %s: got %d probabilities, want %d examples x %d classes = %d",
			what, len(probabilities), examples, classes, examples*classes)
	}
	for n := range examples {
		sum := 0.0
		for k, value := range probabilities[n*classes : (n+1)*classes] {
			p := float64(value)
			if !(p >= 0 && p <= 1+rowTolerance) {
				return errors.Errorf("evaluate: %s: example %d, class %d: got %v, want a probability in [0, 1]", what, n, k, value)
			}
			sum += p
		}
		if math.Abs(sum-1) > rowTolerance {
			return errors.Errorf("evaluate: %s: example %d: probabilities sum to %v, want 1 within %v", what, n, sum, rowTolerance)
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
			return errors.Errorf("evaluate: %s: example %d: got label %d, want one of 0 to below %d", what, n, label, classes)
		}
	}
	return nil
}

// checkScores checks that there are scores and that none is NaN. Infinite scores are allowed: they
// rank first or last.
func checkScores(what, name string, scores []float64) error {
	if len(scores) == 0 {
		return errors.Errorf("evaluate: %s: %s is empty, want at least 1 score", what, name)
	}
	for i, score := range scores {
		if math.IsNaN(score) {
			return errors.Errorf("evaluate: %s: %s: score %d is NaN, want a number", what, name, i)
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
