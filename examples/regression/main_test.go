package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/langevin"
)

// TestMoments: means and variances equal the formulas within four Monte Carlo standard errors;
// SGLD's variances are too large by at most h k/2, with h = 2e-4 and curvatures k up to 470.
func TestMoments(t *testing.T) {
	methods, err := sampleAll(8, 300)
	if err != nil {
		t.Fatal(err)
	}
	want := exact()
	means, stds := [2]float64{want.mean0, want.mean1}, [2]float64{want.deviation0, want.deviation1}
	for _, m := range methods {
		for i := range m.traces {
			variance := stds[i] * stds[i]
			bias := 0.0
			if m.name == (langevin.SGLD{}).Name() {
				bias = 0.047 * variance
			}
			squares := make([][]float64, len(m.traces[i]))
			for chain, values := range m.traces[i] {
				for _, v := range values {
					squares[chain] = append(squares[chain], (v-means[i])*(v-means[i]))
				}
			}
			within(t, m.name+": mean", m.traces[i], means[i], 0)
			within(t, m.name+": variance", squares, variance, bias)
		}
		if got := m.moments(); math.Abs(got.correlation-want.correlation) > 0.05 {
			t.Errorf("%s: correlation %v, want %v", m.name, got.correlation, want.correlation)
		}
	}
}

func within(t *testing.T, what string, chains [][]float64, want, bias float64) {
	t.Helper()
	std, err := diagnostics.MeanStandardError(chains)
	if err != nil {
		t.Fatal(err)
	}
	mean, n := 0.0, 0.0
	for _, values := range chains {
		for _, v := range values {
			mean, n = mean+v, n+1
		}
	}
	mean /= n
	if !(math.Abs(mean-want) < 4*std+bias) {
		t.Errorf("%s: got %v, want %v within %v", what, mean, want, 4*std+bias)
	}
	if !(4*std < 0.5*math.Abs(want)) {
		t.Errorf("%s: the standard error is %v of %v: too few draws for the test", what, std, want)
	}
}

func TestRunSavesTheFigure(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(&out, dir, 2, 30); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "regression.png")); err != nil {
		t.Error(err)
	}
}
