package diagnostics

import (
	"encoding/json"
	"math"
	"testing"
)

func TestMeasuredText(t *testing.T) {
	for want, m := range map[string]Measured{
		"8 ± 2": {8.04, 1.71, 0}, "110 ± 40": {112.3, 41, 8}, "0.97 ± 0.05": {0.9735, 0.0514, 16}, "1.04 ± 0.10": {1.04, 0.0996, 0},
		"0.0 ± 0.1": {-0.02, 0.1, 0}, "1 ± NaN": {1, Number(math.NaN()), 4}, "1.23 ± 0": {1.2345, 0, 0},
		"100 (50 to 160)": {101.8, 16.8, 4}, "1.0 (0.8 to 1.3)": {1.02, 0.1, 7},
	} {
		if got := m.String(); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// Four groups leave 3 degrees of freedom, for which the quantile of Student's t-distribution is
// 3.182.
func TestInterval(t *testing.T) {
	for groups, want := range map[int]float64{0: 1.960, 4: 3.182, 16: 2.131} {
		low, high := Measured{Value: 10, StandardError: 2, Groups: groups}.Interval()
		if !(math.Abs(low-10+2*want) < 2e-3) || !(math.Abs(high-10-2*want) < 2e-3) {
			t.Errorf("%d groups: %v to %v, want 10 ± 2 times %v", groups, low, high, want)
		}
	}
}

// If no chain moves, R-hat is infinite, which JSON cannot hold.
func TestMixingInJSON(t *testing.T) {
	for _, want := range []float64{1.02, math.Inf(1)} {
		content, err := json.Marshal(Mixing{Images: 3, Chains: 2, Values: 12, RHat: Number(want)})
		if err != nil {
			t.Fatal(err)
		}
		var got Mixing
		if err := json.Unmarshal(content, &got); err != nil || float64(got.RHat) != want || got.Images != 3 {
			t.Errorf("R-hat of %v is read as %v from %s (%v)", want, got.RHat, content, err)
		}
	}
}

// TestReportString: the line has what was measured, and nothing else.
func TestReportString(t *testing.T) {
	nan := Number(math.NaN())
	r := &Report{Made: 500, Samples: 20, WeightRHat: nan, LossRHat: nan, Acceptance: nan, Diverged: nan, Swaps: nan, Trace: []float64{1, 2}}
	if got, want := r.String(), "500 steps, 20 samples"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	r.WeightRHat, r.Predicted, r.Acceptance = 1.0123, &Mixing{RHat: 1.004}, 0.8
	r.Temperatures = []Temperature{{Layer: "all", Configurational: 0.981, StandardError: 0.02}}
	want := "500 steps, 20 samples, R-hat of the watched weight 1.012, R-hat of predictions 1.004, temperature 0.98 ± 0.02, acceptance 0.800"
	if got := r.String(); got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}
