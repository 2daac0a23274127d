package diagnostics_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/langevin/trial"
)

// residue is the value i of chain c, both from 1, of data that R also computes exactly.
func residue(i, c int) float64 { return float64((i*i*37 + i*c*11) % 1009) }

func residues(n, chains int, f func(u, i, c float64) float64) [][]float64 {
	x := make([][]float64, chains)
	for c := range x {
		for i := range n {
			x[c] = append(x[c], f(residue(i+1, c+1), float64(i+1), float64(c+1)))
		}
	}
	return x
}

// TestSplitRHatGolden compares with R's package posterior 1.4.0:
//
//	x <- function(n, m, f) outer(1:n, 1:m, function(i, c) f((i*i*37 + i*c*11) %% 1009, i, c))
//	sprintf("%.15f", rhat(x(41, 3, function(u, i, c) u + 400 * c)))
func TestSplitRHatGolden(t *testing.T) {
	for name, c := range map[string]struct {
		chains [][]float64
		want   float64
	}{
		"mixed":    {residues(40, 3, func(u, _, _ float64) float64 { return u }), 0.992485723222690},
		"shifted":  {residues(41, 3, func(u, _, c float64) float64 { return u + 400*c }), 1.604372984459554},
		"wider":    {residues(41, 3, func(u, _, c float64) float64 { return (u - 504) * c }), 1.168036462030468},
		"ties":     {residues(40, 3, func(u, _, c float64) float64 { return math.Mod(u, 5) + c }), 1.163607281251402},
		"trend":    {residues(31, 1, func(u, i, _ float64) float64 { return u + 40*i }), 1.699333373223459},
		"shortest": {residues(4, 2, func(u, _, _ float64) float64 { return u }), 1.640218685708633},
	} {
		got, err := diagnostics.SplitRHat(c.chains)
		if err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: got %.15f (%v), posterior has %.15f", name, got, err, c.want)
		}
		if naive := naiveSplitRHat(c.chains); math.Abs(got-naive) > 1e-12 {
			t.Errorf("%s: got %.15f, naively %.15f", name, got, naive)
		}
	}
}

// naiveSplitRHat follows the paper's text, with ranks by counting.
func naiveSplitRHat(chains [][]float64) float64 {
	var all []float64
	for _, chain := range chains {
		all = append(all, chain...)
	}
	slices.Sort(all)
	median := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
	var halves, folded [][]float64
	for _, chain := range chains {
		n := len(chain) / 2
		for _, half := range [][]float64{chain[:n], chain[len(chain)-n:]} {
			halves = append(halves, half)
			var f []float64
			for _, v := range half {
				f = append(f, math.Abs(v-median))
			}
			folded = append(folded, f)
		}
	}
	return math.Max(naiveRHat(halves), naiveRHat(folded))
}

func naiveRHat(chains [][]float64) float64 {
	s := float64(len(chains) * len(chains[0]))
	var means, variances []float64
	for _, chain := range chains {
		var scores []float64
		for _, v := range chain {
			below, same := 0.0, 0.0
			for _, other := range chains {
				for _, w := range other {
					if w < v {
						below++
					} else if w == v {
						same++
					}
				}
			}
			scores = append(scores, distuv.UnitNormal.Quantile((below+(same+1)/2-0.375)/(s+0.25)))
		}
		means, variances = append(means, stat.Mean(scores, nil)), append(variances, stat.Variance(scores, nil))
	}
	n := float64(len(chains[0]))
	within := stat.Mean(variances, nil)
	return math.Sqrt(((n-1)/n*within + stat.Variance(means, nil)) / within)
}

func TestSplitRHatLimits(t *testing.T) {
	normals := func(n, chains int, f func(i, c int, z float64) float64) [][]float64 {
		x := make([][]float64, chains)
		for c := range x {
			for i, z := range trial.NormalDraws(n, uint16(20+c)) {
				x[c] = append(x[c], f(i, c, z))
			}
		}
		return x
	}
	same := func(_, _ int, z float64) float64 { return z }
	for _, c := range []struct {
		name   string
		chains [][]float64
		lo, hi float64
	}{
		{"independent", normals(2000, 4, same), 0.999, 1.003},
		{"independent, one chain", normals(2000, 1, same), 0.999, 1.003},
		{"independent, Cauchy", normals(2000, 4, func(_, _ int, z float64) float64 { return math.Tan(math.Pi * (distuv.UnitNormal.CDF(z) - 0.5)) }), 0.999, 1.003},
		{"one shifted", normals(500, 4, func(_, c int, z float64) float64 { return z + 3*float64(c/3) }), 1.3, 5},
		{"one wider", normals(500, 4, func(_, c int, z float64) float64 { return z * float64(1+4*(c/3)) }), 1.1, 5},
		{"a trend", normals(500, 1, func(i, _ int, z float64) float64 { return z + float64(i)/50 }), 1.5, 5},
		{"far apart", normals(500, 2, func(_, c int, z float64) float64 { return z + 100*float64(c) }), 1.5, math.Inf(1)},
		{"two values", normals(30, 2, func(i, _ int, _ float64) float64 { return float64(i % 2) }), 0.9, 1.1}, // at one distance from the median
		{"each chain constant", normals(31, 3, func(_, c int, _ float64) float64 { return 0.1 * float64(c+1) }), math.Inf(1), math.Inf(1)},
		{"a step in the middle", normals(30, 1, func(i, _ int, _ float64) float64 { return float64(i / 15) }), math.Inf(1), math.Inf(1)},
	} {
		got, err := diagnostics.SplitRHat(c.chains)
		if err != nil || !(got >= c.lo && got <= c.hi) {
			t.Errorf("%s: %v (%v), want %v to %v", c.name, got, err, c.lo, c.hi)
		}
	}
}

// R-hat of chains that never moved is not a number, as in R's package posterior and in ArviZ.
func TestSplitRHatOfEqualValues(t *testing.T) {
	stuck := slices.Repeat([]float64{0.1}, 30)
	for _, chains := range [][][]float64{{stuck}, {stuck, stuck, stuck}} {
		if got, err := diagnostics.SplitRHat(chains); err != nil || !math.IsNaN(got) {
			t.Errorf("%d chains: %v (%v), want NaN", len(chains), got, err)
		}
	}
}

// TestSplitRHatInvariance: ranks and distances from the median do not change with units, and R-hat
// does not change with the chains' order.
func TestSplitRHatInvariance(t *testing.T) {
	x := residues(41, 3, func(u, _, c float64) float64 { return u + 200*c })
	want, err := diagnostics.SplitRHat(x)
	if err != nil {
		t.Fatal(err)
	}
	scaled := residues(41, 3, func(u, _, c float64) float64 { return -0.25 * (u + 200*c) })
	swapped := [][]float64{x[2], x[0], x[1]}
	for name, chains := range map[string][][]float64{"in other units": scaled, "in another order": swapped} {
		if got, err := diagnostics.SplitRHat(chains); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v (%v), want %v", name, got, err, want)
		}
	}
}

func TestSplitRHatRefuses(t *testing.T) {
	for name, chains := range map[string][][]float64{
		"no chains":       {},
		"empty":           {{}},
		"three values":    {{1, 2, 3}},
		"unequal lengths": {{1, 2, 3, 4}, {1, 2, 3, 4, 5}},
		"NaN":             {{1, 2, math.NaN(), 4}},
		"infinity":        {{1, 2, 3, 4}, {1, 2, 3, math.Inf(-1)}},
	} {
		if got, err := diagnostics.SplitRHat(chains); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}
