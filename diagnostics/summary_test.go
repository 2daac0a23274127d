package diagnostics

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// A Summary has the values of the functions that it combines, and quantiles of all draws.
func TestSummarize(t *testing.T) {
	var chains [][]float64
	for chain := range 3 {
		values := make([]float64, 100)
		for i := range values {
			values[i] = float64((i*37 + chain*11) % 101) // nearly uniform on 0 ... 100
		}
		chains = append(chains, values)
	}
	s, err := Summarize(chains)
	if err != nil {
		t.Fatal(err)
	}
	rHat, _ := SplitRHat(chains)
	bulk, tail, _ := EffectiveSampleSize(chains)
	standardError, _ := MeanStandardError(chains)
	if s.RHat != rHat || s.BulkESS != bulk || s.TailESS != tail || s.StandardError != standardError {
		t.Errorf("%+v, want R-hat %v, sizes %v, %v, standard error %v", s, rHat, bulk, tail, standardError)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"mean", s.Mean, 50}, {"std", s.Std, 101 / math.Sqrt(12)}, {"low", s.Low, 5}, {"median", s.Median, 50}, {"high", s.High, 95}} {
		if math.Abs(c.got-c.want) > 1 {
			t.Errorf("%s %v, want about %v", c.name, c.got, c.want)
		}
	}
	for name, bad := range map[string][][]float64{
		"no chains": nil, "short": {{1, 2, 3}}, "lengths": {make([]float64, 20), make([]float64, 21)}, "equal and short": {make([]float64, 11)},
		"enough for R-hat only": {{1, 2, 3, 4, 5}}, "not finite": {append(make([]float64, 20), math.NaN())},
	} {
		if s, err := Summarize(bad); err == nil || s != (Summary{}) {
			t.Errorf("%s: %+v, error %v; want an error only", name, s, err)
		}
	}
}

// Values that are all equal have a summary without effective sample sizes and without R-hat: chains
// that never moved have not mixed.
func TestSummaryOfEqualValues(t *testing.T) {
	sevens := slices.Repeat([]float64{7}, 20)
	s, err := Summarize([][]float64{sevens, sevens})
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(s.BulkESS) || !math.IsNaN(s.TailESS) {
		t.Errorf("effective sizes %v and %v, want NaN", s.BulkESS, s.TailESS)
	}
	if !math.IsNaN(s.RHat) {
		t.Errorf("R-hat %v, want NaN", s.RHat)
	}
	if got := s.String(); got != "7 at every draw" {
		t.Errorf("text %q", got)
	}
	s.BulkESS, s.TailESS, s.RHat = 0, 0, 0
	if want := (Summary{Mean: 7, Low: 7, Median: 7, High: 7}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// Quantiles are interpolated as by NumPy: the median of an even number of draws is the mean of the
// two in the middle.
func TestSummaryOfFewDraws(t *testing.T) {
	s, err := Summarize([][]float64{{1, 12, 2, 11, 3, 10, 4, 9, 5, 8, 6, 7}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"low", s.Low, 1.55}, {"median", s.Median, 6.5}, {"high", s.High, 11.45}} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s %v, want %v", c.name, c.got, c.want)
		}
	}
}

// Values whose squares overflow or vanish have the summaries of ordinary values, scaled.
func TestSummaryOfExtremeValues(t *testing.T) {
	ordinary := make([]float64, 40)
	for i := range ordinary {
		ordinary[i] = float64(i*i*37%101)/64 - 0.75
	}
	want, err := Summarize([][]float64{ordinary})
	if err != nil {
		t.Fatal(err)
	}
	for _, exponent := range []int{-1000, -600, 512, 1023} {
		scaled := make([]float64, len(ordinary))
		for i, v := range ordinary {
			scaled[i] = math.Ldexp(v, exponent)
		}
		got, err := Summarize([][]float64{scaled})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []*float64{&got.Mean, &got.Std, &got.StandardError, &got.Low, &got.Median, &got.High} {
			*v = math.Ldexp(*v, -exponent)
		}
		if got != want {
			t.Errorf("times 2^%d: %+v, want %+v", exponent, got, want)
		}
	}
}

// The effective sizes leave out the middle value of an odd chain. A summary has the other numbers
// even if only that value differs, as a single divergence does.
func TestSummaryOfOneDifferentValue(t *testing.T) {
	for _, n := range []int{12, 13} {
		for at := range n {
			diverged := make([]float64, n)
			diverged[at] = 1
			s, err := Summarize([][]float64{diverged})
			if err != nil {
				t.Fatalf("divergence %d of %d: %v", at, n, err)
			}
			middle := n == 13 && at == 6
			if math.Abs(s.Mean-1/float64(n)) > 1e-12 || !(s.Std > 0) || math.IsNaN(s.RHat) || math.IsNaN(s.StandardError) != middle || math.IsNaN(s.BulkESS) != middle {
				t.Errorf("divergence %d of %d: %+v", at, n, s)
			}
			if text := s.String(); !strings.HasPrefix(text, "mean 0.") {
				t.Errorf("divergence %d of %d: %q", at, n, text)
			}
		}
	}
}
