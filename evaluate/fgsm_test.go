package evaluate_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

func TestFGSM(t *testing.T) {
	pixels := []byte{0, 10, 128, 250, 255, 77}
	gradient := []float64{-1, -3, 1e-30, 4, -2, 0}
	for size, want := range map[float64][]byte{
		0:         pixels,
		20. / 255: {0, 0, 148, 255, 235, 77},
		1:         {0, 0, 255, 255, 0, 77},
	} {
		got, err := evaluate.FGSM(pixels, gradient, size)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("size %v: %v, %v, want %v", size, got, err, want)
		}
	}
	for name, c := range map[string]struct {
		gradient []float64
		size     float64
	}{
		"a short gradient": {gradient[1:], 0.1},
		"a negative size":  {gradient, -0.1},
		"a size of 2":      {gradient, 2},
		"a NaN size":       {gradient, math.NaN()},
		"a NaN":            {[]float64{0, 0, 0, 0, 0, math.NaN()}, 0.1},
	} {
		if _, err := evaluate.FGSM(pixels, c.gradient, c.size); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
