package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v within %v", what, got, want, tolerance)
	}
}

// One normal has the moments of the data; two that start equal stay at that saddle; two that start
// apart find the distribution that the data were drawn from.
func TestFits(t *testing.T) {
	data := observations(10000, 5000)
	one, err := oneNormal.descend(data, 400)
	if err != nil {
		t.Fatal(err)
	}
	mean, std := moments(data)
	near(t, "the normal's mean", one.mixture[0].mean, mean, 1e-7)
	near(t, "the normal's deviation", one.mixture[0].std, std, 1e-7)
	near(t, "its loss", one.loss, math.Log(std)+0.5*math.Log(2*math.Pi*math.E), 1e-10)

	saddle, err := equal.descend(data, 400)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range saddle.mixture {
		near(t, "an equal normal's mean", n.mean, mean, 1e-7)
		near(t, "an equal normal's deviation", n.std, std, 1e-7)
	}
	near(t, "the gradient at the saddle", saddle.slope, 0, 1e-7)
	if down, up := saddle.around(data); !(down < -1e-4 && up > 1e-4) {
		t.Errorf("around the saddle the loss changes by %v and %v, want one lower and one higher", down, up)
	}

	two, err := apart.descend(data, 400)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the gradient at the minimum", two.slope, 0, 1e-6)
	// Tolerances are about four standard errors of the estimates.
	for k, want := range []normal{{0, 1, 2.0 / 3}, {3, 1, 1.0 / 3}} {
		near(t, "a mean", two.mixture[k].mean, want.mean, 0.09)
		near(t, "a deviation", two.mixture[k].std, want.std, 0.06)
		near(t, "a weight", two.mixture[k].weight, want.weight, 0.03)
	}
	if two.loss > saddle.loss-0.05 {
		t.Errorf("the loss is %v at the minimum and %v at the saddle", two.loss, saddle.loss)
	}
}

func TestRunSavesTheFigure(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(&out, dir, observations(200, 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "likelihood.png")); err != nil || !strings.Contains(out.String(), "saddle") {
		t.Error(err, out.String())
	}
}
