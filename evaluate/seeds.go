package evaluate

import (
	"fmt"
	"math"
)

// MeanAndError returns the mean of independent values, such as scores over seeds, and its standard
// error, which is NaN for fewer than two values.
func MeanAndError(values []float64) (average, standardError float64) {
	average = mean(values)
	squares := 0.0
	for _, v := range values {
		squares += (v - average) * (v - average)
	}
	n := float64(len(values))
	if n < 2 {
		return average, math.NaN()
	}
	return average, math.Sqrt(squares / (n - 1) / n)
}

// Over formats the mean of the score over assessments, such as of runs that differ in their
// seed, with its standard error: "0.9912 ± 0.0004". A single assessment has no error. Over returns
// "-" if the score does not apply to all assessments.
func (s Score) Over(assessments []*Assessment) string {
	var values []float64
	for _, a := range assessments {
		v, ok := a.Values[s.Name]
		if !ok {
			return "-"
		}
		values = append(values, v)
	}
	switch average, standardError := MeanAndError(values); len(values) {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf(s.Format, average)
	default:
		return fmt.Sprintf(s.Format+" ± "+s.Format, average, standardError)
	}
}
