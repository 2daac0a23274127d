package evaluate

import (
	"math"
	"testing"
)

// TestSimulations: more examples have fewer simulations, and these give the same result.
func TestSimulations(t *testing.T) {
	for examples, want := range map[int]int{1: 400, 10_000: 400, 40_000: 100, 80_000: 50, 1_000_000: 50} {
		if got := simulations(examples); got != want {
			t.Errorf("simulations(%d) = %d, want %d", examples, got, want)
		}
	}
	// The error by chance falls with the root of the number of examples.
	few, many := calibrated(8_000), calibrated(128_000)
	mean, high, err := CalibrationErrorByChance(few)
	if err != nil {
		t.Fatal(err)
	}
	smaller, smallerHigh, err := CalibrationErrorByChance(many)
	if err != nil || math.Abs(4*smaller/mean-1) > 0.1 || math.Abs(4*smallerHigh/high-1) > 0.15 {
		t.Errorf("%.5f and at most %.5f, error %v, want %.5f and %.5f", smaller, smallerHigh, err, mean/4, high/4)
	}
}

// calibrated returns predictions for two classes whose confidences are evenly spaced from 0.5 to 1.
func calibrated(examples int) *Predictions {
	p := &Predictions{Name: "uniform", Classes: 2}
	for n := range examples {
		v := 0.5 + 0.5*float64(n)/float64(examples)
		p.Probabilities = append(p.Probabilities, v, 1-v)
	}
	return p
}

func BenchmarkCalibrationErrorByChance(b *testing.B) {
	p := calibrated(1_000_000)
	for b.Loop() {
		if _, _, err := CalibrationErrorByChance(p); err != nil {
			b.Fatal(err)
		}
	}
}
