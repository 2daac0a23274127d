package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestPointEstimate: at temperature 0 the chain ends where the gradient of the log posterior is 0.
func TestPointEstimate(t *testing.T) {
	point, err := sgld(0, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	theta := point[0]
	slope := [3]float64{}
	for i := range slope {
		slope[i] = -theta[i] / (std * std)
	}
	features, classes := observations()
	for i, class := range classes {
		x := features[3*i : 3*i+3]
		surprise := class - sigmoid(theta[0]*x[0]+theta[1]*x[1]+theta[2]*x[2])
		for j := range slope {
			slope[j] += surprise * x[j]
		}
	}
	for j, s := range slope {
		if math.Abs(s) > 1e-6 {
			t.Errorf("slope %d is %v, want 0", j, s)
		}
	}
}

// TestAverages: the samplers' averages are within 0.05, a few standard errors, of the exact ones;
// far from the data the point estimate is not.
func TestAverages(t *testing.T) {
	all, err := predictors(64, 60)
	if err != nil {
		t.Fatal(err)
	}
	exact := all[3]
	for _, place := range places {
		want := exact.at(place[0], place[1])
		for _, p := range all[1:3] {
			if got := p.at(place[0], place[1]); !(math.Abs(got-want) < 0.05) {
				t.Errorf("%s at %v: got %v, want %v", p.name, place, got, want)
			}
		}
	}
	far := places[4]
	if point, average := all[0].at(far[0], far[1]), exact.at(far[0], far[1]); !(point < average-0.1) {
		t.Errorf("far away the point estimate says %v and the average %v: the average is not less sure", point, average)
	}
}

func TestRunSavesTheFigure(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(&out, dir, 2, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "logistic.png")); err != nil {
		t.Error(err)
	}
}
