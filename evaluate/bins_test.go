package evaluate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

// The test draws labels from the probabilities, by other random numbers, and computes their ECE.
func TestCalibrationErrorByChance(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, examples := range []int{24, 80, 2000} {
		p := &evaluate.Predictions{Name: "calibrated", Classes: 2, Labels: make([]int32, examples)}
		for range examples {
			v := 0.5 + 0.5*r.Float64()
			p.Probabilities = append(p.Probabilities, v, 1-v)
		}
		mean, high, err := evaluate.CalibrationErrorByChance(p)
		if err != nil {
			t.Fatal(err)
		}
		const draws = 1000
		each, sum := make([]float64, draws), 0.0
		for i := range each {
			for n := range examples {
				p.Labels[n] = 0
				if r.Float64() >= p.Probabilities[2*n] {
					p.Labels[n] = 1
				}
			}
			bins, err := evaluate.EqualWidthBins(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bins {
				each[i] += float64(b.Count) / float64(examples) * math.Abs(b.Accuracy-b.Confidence)
			}
			sum += each[i] / draws
		}
		slices.Sort(each)
		if want := each[draws*95/100]; math.Abs(mean/sum-1) > 0.1 || math.Abs(high/want-1) > 0.15 {
			t.Errorf("%d examples: %.4f and at most %.4f, want %.4f and %.4f", examples, mean, high, sum, want)
		}
	}
	if _, _, err := evaluate.CalibrationErrorByChance(nil); err == nil {
		t.Error("no predictions: no error")
	}
}
