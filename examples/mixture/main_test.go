package main

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %v, want %v within %v", what, got, want, tolerance)
	}
}

// The published points have published moments.
func TestExactOfPublishedData(t *testing.T) {
	const path = "../../../shared/data/mixture100.csv"
	table, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("the optional data %s is absent", path)
	}
	var data []float64
	for _, word := range strings.Fields(string(table))[1:] {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, x)
	}
	s, levels := exact(data)
	near(t, "E[theta1]", s.mean1, 0.48999, 5e-5)
	near(t, "E[theta2]", s.mean2, 0.05930, 5e-5)
	near(t, "P(theta2>0)", s.positive, 0.518, 1e-3)
	for _, mode := range [][2]float64{{-0.2525, 1.55}, {1.2875, -1.55}} {
		column, row := int(math.Round((mode[0]+1.5)*60)), int(math.Round((mode[1]+4.5)*240/9))
		if density := levels.Values[row*len(levels.X)+column]; density < 0.9 {
			t.Errorf("density at the mode %v is %v of the maximum", mode, density)
		}
	}
}

// Many chains find both modes, in their shares; a chain in one of them would be wrong by 1.4 in theta2. The tolerances are four
// standard errors.
func TestManyChains(t *testing.T) {
	data := observations()
	want, _ := exact(data)
	const chains = 512
	kept, err := sample(data, setting{chains: chains, steps: 200, draws: 4, spacing: 25, first: 0.012, last: 0.002, dispersed: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.theta1) != 4*chains {
		t.Fatalf("%d states, want %d", len(kept.theta1), 4*chains)
	}
	got, errors := kept.summary(), 4/math.Sqrt(chains)
	near(t, "E[theta1]", got.mean1, want.mean1, 0.77*errors)
	near(t, "E[theta2]", got.mean2, want.mean2, 1.51*errors)
	near(t, "P(theta2>0)", got.positive, want.positive, 0.5*errors)
	// sd(theta2) = 1.42 because there are two modes; one has 0.5.
	square := 0.0
	for _, theta2 := range kept.theta2 {
		square += (theta2 - got.mean2) * (theta2 - got.mean2) / float64(len(kept.theta2))
	}
	near(t, "sd(theta2)", math.Sqrt(square), 1.42, 0.1)
}

// A chain with the published step sizes, which begins in one mode, stays there for most of its time.
func TestOneChainMistakesAMode(t *testing.T) {
	kept, err := sample(observations(), setting{chains: 1, steps: 10000, draws: 500, spacing: 10, first: 0.005, last: 0.00005})
	if err != nil {
		t.Fatal(err)
	}
	if share := kept.summary().positive; share > 0.3 && share < 0.7 {
		t.Errorf("one chain has P(theta2>0) = %v: the modes are not apart", share)
	}
}
