package diagnostics_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/diagnostics"
)

// logLikelihoods has the traces of ln N(y_i; theta, 1) for draws theta = mean + std z.
func logLikelihoods(y []float64, n, chains int, mean, std float64) [][][]float64 {
	var all [][][]float64
	for _, v := range y {
		all = append(all, mapped(lehmer(n, chains, 7), func(chain []float64, _, i int) float64 {
			return distuv.Normal{Mu: mean + std*distuv.UnitNormal.Quantile(chain[i]), Sigma: 1}.LogProb(v)
		}))
	}
	return all
}

// The values come from ArviZ 0.23.4: psislw with the relative efficiency ess(exp(log likelihood),
// method="mean") of each observation. The last observation is an outlier.
func TestLeaveOneOutAgainstArviZ(t *testing.T) {
	y := []float64{-0.9, 0.1, 0.3, 0.8, 1.1, 9}
	got, err := diagnostics.EstimateLeaveOneOut(logLikelihoods(y, 250, 4, 0.4, 0.3))
	if err != nil {
		t.Fatal(err)
	}
	terms := []float64{-1.8925089663881003, -1.0167488217614349, -0.9735381738566274, -1.0589832370923125, -1.2432056318508424, -42.06048220264343}
	k := []float64{0.18229404227421694, 0.14765038399752556, 0.16028787752994794, 0.2207094276569408, 0.21704775871659138, 1.1559873761534272}
	for i := range y {
		if math.Abs(got.Pointwise[i]-terms[i]) > 1e-9 || math.Abs(got.ParetoK[i]-k[i]) > 1e-9 {
			t.Errorf("observation %d: %v, Pareto k %v, want %v, %v", i, got.Pointwise[i], got.ParetoK[i], terms[i], k[i])
		}
	}
	const elpd, standardError, lppd = -48.245467033592746, 40.831999200242656, -41.1738505674
	if math.Abs(float64(got.Elpd.Value)-elpd) > 1e-9 || math.Abs(float64(got.Elpd.StandardError)-standardError) > 1e-9 ||
		math.Abs(got.Parameters-(lppd-elpd)) > 1e-7 {
		t.Errorf("got %+v, want %v +- %v", got, elpd, standardError)
	}
	if list := got.Unreliable(); !slices.Equal(list, []int{5}) {
		t.Errorf("unreliable are %v, want 5", list)
	}
	if s := got.String(); s != "elpd -50 ± 40, 7.1 effective parameters, unreliable: Pareto k is above 0.67 for 1 of 6 observations" {
		t.Error(s)
	}
}

// The posterior of the mean of n normal observations under a flat prior is N(mean y, 1/n), and y_i
// given the others is N(their mean, 1 + 1/(n-1)).
func TestLeaveOneOutOfNormals(t *testing.T) {
	const n = 40
	var y []float64
	mean := 0.0
	for i := range n {
		y = append(y, distuv.UnitNormal.Quantile((float64(i)+0.5)/n))
		mean += y[i] / n
	}
	got, err := diagnostics.EstimateLeaveOneOut(logLikelihoods(y, 2000, 4, mean, 1/math.Sqrt(n)))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range y {
		want := distuv.Normal{Mu: (n*mean - v) / (n - 1), Sigma: math.Sqrt(1 + 1./(n-1))}.LogProb(v)
		if math.Abs(got.Pointwise[i]-want) > 0.01 {
			t.Errorf("observation %d: %v, want %v", i, got.Pointwise[i], want)
		}
	}
	if math.Abs(got.Parameters-1) > 0.1 || len(got.Unreliable()) > 0 {
		t.Errorf("%v, want 1 effective parameter", got)
	}
	shifted, err := diagnostics.EstimateLeaveOneOut(logLikelihoods(y, 2000, 4, mean+1, 1/math.Sqrt(n)))
	if err != nil {
		t.Fatal(err)
	}
	difference, err := got.Minus(shifted)
	want := float64(got.Elpd.Value - shifted.Elpd.Value)
	if err != nil || math.Abs(float64(difference.Value)-want) > 1e-9 || !(difference.StandardError < got.Elpd.StandardError+shifted.Elpd.StandardError) {
		t.Errorf("the difference is %v, %v, want %v", difference, err, want)
	}
}

// An observation of nearly equal likelihoods is reliable, one with few weights above 0 is not.
func TestLeaveOneOutOfExtremes(t *testing.T) {
	for name, c := range map[string]struct {
		value      func(i int) float64
		elpd       float64 // of an observation
		unreliable int
	}{
		"equal":                {func(int) float64 { return 0 }, 0, 0},
		"equal up to rounding": {func(i int) float64 { return -1e-19 * float64(i) }, 0, 0},
		"few values":           {func(i int) float64 { return -1e-8 * float64(min(1, i%10)) }, -0.9e-8, 0},
		"a wide range":         {func(i int) float64 { return -1000 * float64(i) }, -199000 + math.Log(200), 2},
	} {
		chains := [][]float64{make([]float64, 100), make([]float64, 100)}
		for i := range 200 {
			chains[i/100][i%100] = c.value(i)
		}
		got, err := diagnostics.EstimateLeaveOneOut([][][]float64{chains, chains})
		if off := math.Abs(float64(got.Elpd.Value) - 2*c.elpd); err != nil || !(off <= 1e-14*max(1, -c.elpd)) || len(got.Unreliable()) != c.unreliable {
			t.Errorf("%s: %+v (%v), want elpd %v", name, got, err, 2*c.elpd)
		}
	}
}

// The limit of Pareto k grows with the number of draws.
func TestMaxParetoK(t *testing.T) {
	for draws, want := range map[int]float64{100: 0.5, 1000: 2. / 3, 10000: 0.7} {
		got, err := diagnostics.EstimateLeaveOneOut(logLikelihoods([]float64{0, 1}, draws/2, 2, 0, 1))
		if err != nil || math.Abs(got.MaxParetoK-want) > 1e-15 {
			t.Errorf("%d draws: at most %v (%v), want %v", draws, got.MaxParetoK, err, want)
		}
	}
}

func TestLeaveOneOutErrors(t *testing.T) {
	good := logLikelihoods([]float64{1}, 20, 2, 0, 1)[0]
	for want, data := range map[string][][][]float64{
		"at least 2 observations, got 1":                      {good},
		"observation 1: diagnostics: likelihoods: chains":     {good, {good[0], good[1][:19]}},
		"observation 0: diagnostics: likelihoods: values":     {{good[0], append([]float64{math.Inf(-1)}, good[1][1:]...)}, good},
		"observation 1: diagnostics: likelihoods: there must": {good, nil},
		"the same draws, got 20 for observation 1 and 40":     {good, good[:1]},
	} {
		if _, err := diagnostics.EstimateLeaveOneOut(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	few, _ := diagnostics.EstimateLeaveOneOut([][][]float64{good, good})
	if _, err := few.Minus(diagnostics.LeaveOneOut{}); err == nil {
		t.Error("models of different observations: no error")
	}
}
