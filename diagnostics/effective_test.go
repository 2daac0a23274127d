package diagnostics_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/diagnostics"
)

// lehmer are numbers in (0, 1), chain after chain, as testdata/convergence.R makes them.
func lehmer(n, chains int, seed int64) [][]float64 {
	u := make([][]float64, chains)
	for c := range u {
		u[c] = make([]float64, n)
		for i := range u[c] {
			seed = 16807 * seed % 2147483647
			u[c][i] = float64(seed) / 2147483647
		}
	}
	return u
}

// lehmerAutoregression is x_t = correlation x_{t-1} + u_t - 1/2.
func lehmerAutoregression(n, chains int, seed int64, correlation float64) [][]float64 {
	return mapped(lehmer(n, chains, seed), func(chain []float64, _, i int) float64 {
		v := chain[i] - 0.5
		if i > 0 {
			v += float64(correlation * chain[i-1])
		}
		return v
	})
}

// mapped changes the chains value by value, in their order.
func mapped(chains [][]float64, change func(chain []float64, c, i int) float64) [][]float64 {
	for c, chain := range chains {
		for i := range chain {
			chain[i] = change(chain, c, i)
		}
	}
	return chains
}

func heavyTailed(n, chains int, seed int64) [][]float64 {
	return mapped(lehmer(n, chains, seed), func(chain []float64, _, i int) float64 {
		return (chain[i] - 0.5) / float64(chain[i]*(1-chain[i]))
	})
}

// Rscript diagnostics/testdata/convergence.R prints the expected values, of posterior's rhat,
// ess_bulk, ess_tail and mcse_mean.
func TestConvergenceAgreesWithPosterior(t *testing.T) {
	for _, c := range []struct {
		name                            string
		chains                          [][]float64
		rHat, bulk, tail, standardError float64
	}{
		{"independent", lehmer(250, 4, 1), 1.00043196088, 952.454972975, 981.17636821, 0.00915448785817},
		{"autoregression 0.9", lehmerAutoregression(500, 4, 2, 0.9), 1.06192488624, 83.1943424095, 185.698414234, 0.0751866369541},
		{"autoregression -0.6", lehmerAutoregression(201, 3, 3, -0.6), 1.00283096414, 1666.89075023, 472.013254337, 0.00891899050424},
		{"chains apart", mapped(lehmer(257, 4, 4), func(chain []float64, c, i int) float64 {
			return chain[i] + 0.25*float64(c)
		}), 1.43404693375, 8.367832538, 27.8271516929, 0.140248507363},
		{"one chain wider", mapped(lehmer(257, 4, 5), func(chain []float64, c, i int) float64 {
			if c == 0 {
				return 4 * (chain[i] - 0.5)
			}
			return chain[i] - 0.5
		}), 1.25488300811, 1058.4144155, 31.4093908242, 0.0190017832638},
		{"one chain stuck", mapped(lehmer(100, 4, 6), func(chain []float64, c, i int) float64 {
			if c == 2 {
				return 0.25
			}
			return chain[i]
		}), 1.10515088851, 120.923631106, 310.310044595, 0.0491513807996},
		{"ties", mapped(lehmerAutoregression(400, 2, 7, 0.8), func(chain []float64, _, i int) float64 {
			return math.Floor(4*chain[i]) / 4
		}), 1.01376147849, 93.6492420866, 171.357763138, 0.0561076544687},
		{"random walk", lehmerAutoregression(333, 1, 8, 1), 2.12717855765, 1.32080918691, 10.8234913373, 3.01878994167},
		{"heavy tails", heavyTailed(1000, 2, 9), 1.00123473454, 1816.2056252, 1848.89115572, 513.265281654},
		{"short", lehmer(13, 2, 10), 0.965718160357, 33.1250698011, 14.7945205479, 0.0458911294896},
	} {
		t.Run(c.name, func(t *testing.T) {
			rHat, err := diagnostics.SplitRHat(c.chains)
			if err != nil {
				t.Fatal(err)
			}
			bulk, tail, err := diagnostics.EffectiveSampleSize(c.chains)
			if err != nil {
				t.Fatal(err)
			}
			standardError, err := diagnostics.MeanStandardError(c.chains)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range []struct {
				name      string
				got, want float64
			}{
				{"split R-hat", rHat, c.rHat}, {"bulk", bulk, c.bulk}, {"tail", tail, c.tail}, {"standard error", standardError, c.standardError},
			} {
				if !(math.Abs(v.got/v.want-1) < 1e-10) {
					t.Errorf("%s is %.12g, want %.12g", v.name, v.got, v.want)
				}
			}
		})
	}
}

// naiveStandardError is the formula of EffectiveSampleSize, term by term, for an even number of
// values.
func naiveStandardError(chains [][]float64) float64 {
	var halves [][]float64
	var all, means, variances []float64
	for _, chain := range chains {
		n := len(chain) / 2
		halves = append(halves, chain[:n], chain[n:])
		all = append(all, chain...)
	}
	n := len(halves[0])
	for _, half := range halves {
		means = append(means, stat.Mean(half, nil))
		variances = append(variances, stat.Variance(half, nil))
	}
	within := stat.Mean(variances, nil)
	total := within*float64(n-1)/float64(n) + stat.Variance(means, nil)
	rho := func(lag int) float64 {
		if lag == 0 {
			return 1
		}
		sum := 0.0
		for h, half := range halves {
			for i := lag; i < n; i++ {
				sum += (half[i] - means[h]) * (half[i-lag] - means[h])
			}
		}
		return 1 - (within-sum/float64(n*len(halves)))/total
	}
	var pairs []float64
	for rho(2*len(pairs))+rho(2*len(pairs)+1) > 0 && 2*len(pairs)+5 < n {
		k := len(pairs)
		pairs = append(pairs, rho(2*k)+rho(2*k+1))
		if k > 0 {
			pairs[k] = min(pairs[k], pairs[k-1])
		}
	}
	tau := -1 + max(0, rho(2*len(pairs)))
	for _, pair := range pairs {
		tau += 2 * pair
	}
	size := float64(n * len(halves))
	return stat.StdDev(all, nil) / math.Sqrt(size/max(tau, 1/math.Log10(size)))
}

func TestMeanStandardErrorAgainstNaiveLoop(t *testing.T) {
	for _, n := range []int{12, 14, 62, 66, 514} {
		for chains := 1; chains <= 5; chains += 2 {
			for _, correlation := range []float64{-0.99, -0.5, 0, 0.7, 1} {
				x := lehmerAutoregression(n, chains, int64(n+chains), correlation)
				got, err := diagnostics.MeanStandardError(x)
				if err != nil {
					t.Fatal(err)
				}
				if want := naiveStandardError(x); !(math.Abs(got/want-1) < 1e-11) {
					t.Errorf("%d chains of %d, correlation %v: standard error is %.14g, want %.14g", chains, n, correlation, got, want)
				}
			}
		}
	}
}

// The mean of n values of an autoregression that is driven by noise of variance v has a variance of
// v/(n (1 - correlation)^2).
func TestMeanStandardErrorOfAutoregression(t *testing.T) {
	for _, correlation := range []float64{-0.5, 0, 0.5, 0.9} {
		got, err := diagnostics.MeanStandardError(lehmerAutoregression(5000, 4, 12, correlation))
		if err != nil {
			t.Fatal(err)
		}
		if want := math.Sqrt(1.0/12/20000) / (1 - correlation); !(math.Abs(got/want-1) < 0.05) {
			t.Errorf("correlation %v: standard error is %.4g, want %.4g to 5 %%", correlation, got, want)
		}
	}
}

// The bulk's size depends only on ranks; the standard error scales with the values and does not
// change when they shift.
func TestEffectiveSampleSizeUnderTransformations(t *testing.T) {
	chains := lehmerAutoregression(301, 3, 13, 0.8)
	bulk, tail, err := diagnostics.EffectiveSampleSize(chains)
	if err != nil {
		t.Fatal(err)
	}
	standardError, err := diagnostics.MeanStandardError(chains)
	if err != nil {
		t.Fatal(err)
	}
	shifted := mapped(lehmerAutoregression(301, 3, 13, 0.8), func(chain []float64, _, i int) float64 { return 1e6 + 8*chain[i] })
	if got, err := diagnostics.MeanStandardError(shifted); err != nil || !(math.Abs(got/(8*standardError)-1) < 1e-6) {
		t.Errorf("8 x + 1e6: standard error is %v (%v), want %v", got, err, 8*standardError)
	}
	exponential := mapped(lehmerAutoregression(301, 3, 13, 0.8), func(chain []float64, c, i int) float64 { return math.Exp(3 * chain[i]) })
	otherBulk, otherTail, err := diagnostics.EffectiveSampleSize(exponential)
	if err != nil {
		t.Fatal(err)
	}
	if !(math.Abs(otherBulk-bulk) < 1e-9) || !(math.Abs(otherTail-tail) < 1e-9) {
		t.Errorf("exp(3 x): bulk and tail are %v and %v, want %v and %v", otherBulk, otherTail, bulk, tail)
	}
}

// Of two values, one is the quantile of 95 %: the indicator of the upper tail would be 1
// everywhere.
func TestTailOfTwoValues(t *testing.T) {
	for _, zeros := range []float64{0.01, 0.3, 0.99} {
		chains := mapped(lehmer(200, 2, 14), func(chain []float64, _, i int) float64 {
			if chain[i] < zeros {
				return 0
			}
			return 1
		})
		bulk, tail, err := diagnostics.EffectiveSampleSize(chains)
		if err != nil {
			t.Fatal(err)
		}
		// Any function of two values is linear, and all sizes are the same.
		if !(math.Abs(bulk/tail-1) < 1e-9) || !(bulk > 200 && bulk < 700) {
			t.Errorf("%v zeros: bulk is %v and tail %v: want the same, about 400", zeros, bulk, tail)
		}
	}
}

// Alternating values make the mean exact; the bound limits how far that is believed.
func TestEffectiveSampleSizeIsBounded(t *testing.T) {
	chains := mapped(lehmer(100, 2, 15), func(chain []float64, _, i int) float64 { return float64(i%2) + chain[i]/1e6 })
	bulk, _, err := diagnostics.EffectiveSampleSize(chains)
	if want := 200 * math.Log10(200); err != nil || !(math.Abs(bulk/want-1) < 1e-12) {
		t.Errorf("effective sample size is %v (%v), want %v", bulk, err, want)
	}
}

func TestEffectiveSampleSizeRefuses(t *testing.T) {
	same := mapped(lehmer(20, 2, 16), func([]float64, int, int) float64 { return 0.1 })
	infinite := lehmer(20, 2, 16)
	infinite[1][3] = math.Inf(-1)
	unknown := lehmer(20, 1, 16)
	unknown[0][19] = math.NaN()
	// Halves leave the middle of an odd chain out, and with it what differs, or what is below 5 %.
	middle := [][]float64{make([]float64, 13)}
	middle[0][6] = 1
	least := lehmer(13, 1, 16)
	least[0][6] = -1e3
	if bulk, tail, err := diagnostics.EffectiveSampleSize(least); err == nil {
		t.Errorf("effective sample size: %v and %v where the halves have nothing below 5 %%, want an error", bulk, tail)
	}
	for _, c := range []struct {
		chains [][]float64
		want   string
		mean   bool // the mean's standard error is refused as well
	}{
		{nil, "there must be at least one chain", true},
		{lehmer(11, 2, 16), "chains must have at least 12 values, got 11 in chain 0", true},
		{append(lehmer(20, 2, 16), make([]float64, 19)), "chains must have the same length, got 19 values in chain 2 and 20 in chain 0", true},
		{infinite, "got -Inf in chain 1", true},
		{unknown, "got NaN in chain 0", true},
		{same, "values must differ, got only 0.1", false},
		{middle, "except the middle ones of odd chains", true},
	} {
		_, _, err := diagnostics.EffectiveSampleSize(c.chains)
		if err == nil || !strings.HasPrefix(err.Error(), "diagnostics: effective sample size: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("effective sample size: error is %v, want %q", err, c.want)
		}
		standardError, err := diagnostics.MeanStandardError(c.chains)
		switch {
		case !c.mean && (err != nil || standardError != 0):
			t.Errorf("standard error of equal values is %v (%v), want 0", standardError, err)
		case c.mean && (err == nil || !strings.HasPrefix(err.Error(), "diagnostics: standard error of the mean: ") || !strings.Contains(err.Error(), c.want)):
			t.Errorf("standard error: error is %v, want %q", err, c.want)
		}
	}
}

// The expected value is by hand: changes of 1 and 2, whose mean square is 2.5, and a variance of
// 7/3 around the mean of 7/3. Independent energies have 2, those that follow each other less.
func TestBFMI(t *testing.T) {
	got, err := diagnostics.BFMI([]float64{1, 2, 4})
	if err != nil || math.Abs(got-2.5*3/7) > 1e-12 {
		t.Errorf("BFMI is %v (%v), want %v", got, err, 2.5*3/7)
	}
	for name, c := range map[string]struct {
		energies []float64
		want     float64
	}{
		"independent":    {lehmer(4000, 1, 1)[0], 2},
		"autoregression": {lehmerAutoregression(4000, 1, 2, 0.9)[0], 0.2}, // 2 (1 - correlation)
	} {
		if got, err := diagnostics.BFMI(c.energies); err != nil || math.Abs(got/c.want-1) > 0.1 {
			t.Errorf("%s: BFMI is %v (%v), want about %v", name, got, err, c.want)
		}
	}
	for _, unit := range []float64{1e200, 1e-200, math.MaxFloat64} {
		if got, err := diagnostics.BFMI([]float64{unit, -unit, unit}); err != nil || math.Abs(got-3) > 1e-12 {
			t.Errorf("in units of %v: BFMI is %v (%v), want 3", unit, got, err)
		}
	}
	for name, energies := range map[string][]float64{"one": {1}, "equal": {2, 2, 2}, "NaN": {1, math.NaN(), 2}, "infinite": {1, math.Inf(1), 2}} {
		if got, err := diagnostics.BFMI(energies); err == nil {
			t.Errorf("%s: BFMI is %v, want an error", name, got)
		}
	}
}
