package evaluate_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

// TestFractionInterval compares with values from tables. That of 8 of 10 is in Wilson (1927).
func TestFractionInterval(t *testing.T) {
	for _, c := range []struct {
		fraction  float64
		n         int
		low, high float64
	}{{0, 10, 0, 0.2775}, {1, 10, 0.7225, 1}, {0.5, 10, 0.2366, 0.7634}, {0.8, 10, 0.4902, 0.9433}, {0.9, 1000, 0.8798, 0.9171}} {
		low, high := evaluate.FractionInterval(c.fraction, c.n)
		if math.Abs(low-c.low) > 1e-4 || math.Abs(high-c.high) > 1e-4 {
			t.Errorf("%v of %d: %.4f to %.4f, want %.4f to %.4f", c.fraction, c.n, low, high, c.low, c.high)
		}
	}
}
