package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
)

// Gradient is dw and the numerical derivative of -log p/N; its virial is the sum of w times it.
func TestGradient(t *testing.T) {
	const dataSize, step = 5, 1e-6
	w, dw := []float64{-1.2, -0.1, 0.3, 2}, []float64{0.5, -2, 0, 1}
	for _, prior := range append(everyPrior, langevin.ScaleMixture(0.3, 1, 0.2)) {
		g := make([]float64, len(w))
		virial := langevin.Gradient(prior, dataSize, g, w, dw)
		total := 0.0
		for i, theta := range w {
			want := dw[i] - (prior.LogDensity(theta+step)-prior.LogDensity(theta-step))/(2*step*dataSize)
			if !(math.Abs(g[i]-want) < 1e-7) {
				t.Errorf("%s at %v: got %v, want %v", prior, theta, g[i], want)
			}
			total += theta * want
		}
		if !(math.Abs(virial-total) < 1e-6) {
			t.Errorf("%s: got virial %v, want %v", prior, virial, total)
		}
	}
}
