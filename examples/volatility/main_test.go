package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
)

// On a short series the chains agree, and the truth lies in the bands, which are narrow enough to tell something.
func TestBandsCoverTheTruth(t *testing.T) {
	const days = 60
	returns, truth := observations(days)
	traces, err := sample(returns, 250)
	if err != nil {
		t.Fatal(err)
	}
	bands, err := volatilities(traces, days)
	if err != nil {
		t.Fatal(err)
	}
	if share := covered(bands, truth); share < 0.75 {
		t.Errorf("bands of 90 %% cover %v of the days", share)
	}
	width := 0.0
	for _, band := range bands {
		width += math.Log(band.high/band.low) / days
	}
	if width > math.Log(4) {
		t.Errorf("the mean band spans a factor of %v: too wide to tell anything", math.Exp(width))
	}
	for name, want := range map[string]float64{"deviation": trueDeviation, "freedom": trueFreedom} {
		chains, err := traces.Of(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := intervalOf(chains); got.low > want || got.high < want {
			t.Errorf("%s: %+v does not hold %v", name, got, want)
		}
		rHat, err := langevin.SplitRHat(chains)
		if err != nil {
			t.Fatal(err)
		}
		if rHat > 1.05 {
			t.Errorf("%s: R-hat is %v", name, rHat)
		}
	}
}

func TestIntervals(t *testing.T) {
	chains := [][]float64{make([]float64, 50), make([]float64, 50)}
	for i := range 100 {
		chains[i%2][i/2] = float64(99 - i)
	}
	if got := intervalOf(chains); got != (interval{mean: 49.5, low: 5, high: 94}) {
		t.Errorf("got %+v", got)
	}
	if share := covered([]interval{{low: 1, high: 2}, {low: 1, high: 2}}, []float64{1.5, 3}); share != 0.5 {
		t.Errorf("covered %v, want 0.5", share)
	}
}

func TestRunSavesTheFigure(t *testing.T) {
	folder := t.TempDir()
	var out strings.Builder
	if err := run(&out, folder, 20, 40); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "volatility.png")); err != nil || !strings.Contains(out.String(), "on ") {
		t.Error(err, out.String())
	}
}
