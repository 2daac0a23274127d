package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// quick is enough for short series.
var quick = effort{warmup: 100, draws: 250, steps: 4000, fit: fit{replicas: 20, epochs: 300, burnIn: 100, rate: 0.001}}

// naivePotential is -ln of the posterior's density at a target's parameters, up to the constants of
// the map from innovations to the walk.
func naivePotential(returns []float64, logStd, logFreedom float64, walk []float64) float64 {
	std, freedom := math.Exp(logStd), math.Exp(logFreedom)
	gaussian := func(x, std float64) float64 {
		return -x*x/(2*std*std) - math.Log(std) - 0.5*math.Log(2*math.Pi)
	}
	upper, _ := math.Lgamma((freedom + 1) / 2)
	lower, _ := math.Lgamma(freedom / 2)
	density := math.Log(10) - 10*std + logStd + math.Log(0.1) - 0.1*freedom + logFreedom
	density += gaussian(walk[0], 10) + float64(len(walk))*logStd
	for i, s := range walk {
		if i > 0 {
			density += gaussian(s-walk[i-1], std)
		}
		z := returns[i] / math.Exp(s)
		density += upper - lower - 0.5*math.Log(math.Pi*freedom) - (freedom+1)/2*math.Log(1+z*z/freedom) - s
	}
	return -density
}

// The differences of the potential between the chains' starts equal the formula's, whose constant
// differs.
func TestPotential(t *testing.T) {
	s := made(31)
	b := graph.New(tensor.Float64)
	at := target(b, s.returns)
	b.Output("potential", at.Potential)
	b.Output("log scale", at.Quantities[2].Node)
	var differences [3]float64
	err := b.OnHost(graph.LoadOptions{Seed: 1, Chains: len(differences)}, func(session *graph.Session) error {
		if err := session.Run(1); err != nil {
			return err
		}
		for chain := range differences {
			var potential, logStd, logFreedom [1]float64
			walk, innovations := make([]float64, 31), make([]float64, 31)
			for name, values := range map[string][]float64{"potential": potential[:], "log deviation": logStd[:],
				"log freedom": logFreedom[:], "log scale": walk, "innovations": innovations} {
				if err := graph.Read(session, name, chain, 0, values); err != nil {
					return err
				}
			}
			middle, memory := smooth(s.returns, startStd)
			wider, _ := smooth(s.returns, startStd*1.001)
			x := 0.0
			for i, innovation := range innovations {
				if x = memory*x + innovation; i == 0 {
					x = innovation / math.Sqrt(1-memory*memory)
				}
				turn := (wider[i] - middle[i]) / math.Log(1.001) * (logStd[0] - math.Log(startStd))
				if want := middle[i] + turn + math.Exp(logStd[0])*x; math.Abs(walk[i]-want) > 0.01 {
					t.Fatalf("chain %d: the walk of day %d is %v, want %v", chain, i, walk[i], want)
				}
			}
			differences[chain] = potential[0] - naivePotential(s.returns, logStd[0], logFreedom[0], walk)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for chain, difference := range differences {
		if math.Abs(difference-differences[0]) > 1e-9 {
			t.Errorf("chain %d: the potential differs from the formula by %v, chain 0's by %v", chain, difference, differences[0])
		}
	}
}

// The smoothed walk has the highest density: changing a day does not raise it.
func TestSmooth(t *testing.T) {
	s := made(33)
	walk, memory := smooth(s.returns, 0.2)
	if want := 0.04 * 2 * startFreedom / (startFreedom + 3.0); math.Abs(memory+1/memory-2-want) > 1e-12 || memory >= 1 {
		t.Errorf("the memory is %v", memory)
	}
	density := func() float64 {
		// The walk's level is free.
		return -naivePotential(s.returns, math.Log(0.2), math.Log(startFreedom), walk) + walk[0]*walk[0]/200
	}
	for day := range walk {
		const h = 1e-4
		walk[day] += h
		up := density()
		walk[day] -= 2 * h
		down := density()
		walk[day] += h
		if slope := (up - down) / (2 * h); math.Abs(slope) > 1e-5 {
			t.Errorf("day %d: the slope is %v", day, slope)
		}
	}
}

// On a short series chains agree, and their bands hold the truth and are narrow enough to be
// informative; Bayes by Backprop's are too narrow.
func TestMethods(t *testing.T) {
	s := made(60)
	exact, _, err := noUTurn(s.returns, quick.warmup, quick.draws)
	if err != nil {
		t.Fatal(err)
	}
	if share := covered(exact.bands, s.scales); share < 0.75 {
		t.Errorf("bands of 90 %% cover %v of the days", share)
	}
	if wide := width(exact.bands); wide > math.Log(5) {
		t.Errorf("the mean band spans a factor of %v: too wide to tell anything", math.Exp(wide))
	}
	for _, e := range []struct {
		estimate
		truth float64
	}{{exact.std, trueStd}, {exact.freedom, trueFreedom}} {
		if e.low > e.truth || e.high < e.truth || e.rHat > 1.05 {
			t.Errorf("%+v: R-hat is above 1.05, or the band does not hold %v", e.estimate, e.truth)
		}
	}
	draws, err := preconditioned(s.returns, quick.steps)
	if err != nil {
		t.Fatal(err)
	}
	if ratio := draws.freedom.std / exact.freedom.std; ratio < 0.5 || ratio > 2 {
		t.Errorf("freedom's standard deviation is %v times as large by pSGLD", ratio)
	}
	published, err := bayesByBackprop(s.returns, quick.fit)
	if err != nil {
		t.Fatal(err)
	}
	if ratio := width(published.bands) / width(exact.bands); ratio > 0.5 {
		t.Errorf("the band of Bayes by Backprop is %v times as wide as that of NUTS", ratio)
	}
}

// The real returns can be read, and a short run on the first of them gives plausible results.
func TestIndex(t *testing.T) {
	testenv.NeedsAll(t, "a fit of 2905 returns")
	path := filepath.Join("..", "..", "..", "shared", "data", "sp500.csv")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here: the test needs the daily closes of the S&P 500 from 2008-05-01 to 2019-11-13", path)
	}
	s, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.returns); n != 2905 || len(s.times) != n {
		t.Fatalf("got %d returns at %d times, want 2905", n, len(s.times))
	}
	if got, want := s.returns[0], math.Log(1413.900024/1409.339966); math.Abs(got-want) > 1e-15 {
		t.Errorf("the first return is %v, want %v", got, want)
	}
	// The published run was at 0.0271 and 9.85 after the same number of epochs.
	published, err := bayesByBackprop(s.returns, fit{replicas: 20, epochs: 300, burnIn: 280, rate: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	if d, v := published.std.mean, published.freedom.mean; d < 0.022 || d > 0.032 || v < 9.5 || v > 9.99 {
		t.Errorf("the published approximation has a deviation of %v and a freedom of %v, want about 0.027 and 9.8", d, v)
	}
	exact, _, err := noUTurn(s.returns[:300], quick.warmup, quick.draws)
	if err != nil {
		t.Fatal(err)
	}
	if d := exact.std; d.low < 0.03 || d.high > 0.3 || d.rHat > 1.05 {
		t.Errorf("the deviation is %+v, want about 0.1", d)
	}
	// The volatility of October 2008 was several times that of May.
	if rise := exact.bands[115].mean - exact.bands[10].mean; rise < math.Log(2) {
		t.Errorf("the volatility rose by a factor of %v", math.Exp(rise))
	}
}

func TestReadRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"date": "Date,Close\n1 May,2\n", "must have a date and a close": "Date\n2008-05-01\n", "positive": "Date,Close\n2008-05-01,0\n",
		"must have 2 to": "Date,Close\n2008-05-01,2\n2008-05-02,3\n", "got 0": "",
		"row 3: days must be in order of time": "Date,Close\n2008-05-02,2\n2008-05-01,3\n",
		"closes must differ":                   "Date,Close\n2008-05-01,2\n2008-05-02,2\n2008-05-03,2\n",
	} {
		path := filepath.Join(t.TempDir(), "closes.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: got %v, want an error with %q", text, err, name)
		}
	}
}

func TestRunWithoutDirectory(t *testing.T) {
	if err := run(t.Output(), filepath.Join(t.TempDir(), "none"), made(20), effort{}); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("got %v, want an error that names the directory", err)
	}
}

func TestRunSavesTheFigure(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	if err := run(&out, dir, made(20), effort{warmup: 40, draws: 40, steps: 500, fit: fit{replicas: 5, epochs: 30, burnIn: 10, rate: 0.001}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "volatility.png")); err != nil || !strings.Contains(out.String(), " on ") || strings.Contains(out.String(), "%!") {
		t.Error(err, out.String())
	}
}
