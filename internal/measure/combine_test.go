package measure

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
)

// The standard error of a mean over parts follows from their own errors or from their spread.
func TestMeanOfMeasured(t *testing.T) {
	of := func(value, standardError float64) diagnostics.Measured {
		return diagnostics.Measured{Value: diagnostics.Number(value), StandardError: diagnostics.Number(standardError)}
	}
	none := math.NaN()
	for _, c := range []struct {
		measured []diagnostics.Measured
		shares   []float64
		want     diagnostics.Measured
	}{
		{[]diagnostics.Measured{of(1, 0.3)}, []float64{7}, of(1, 0.3)},
		{[]diagnostics.Measured{of(2, 0.3), of(2.25, 0.4)}, []float64{1, 1}, of(2.125, 0.25)},
		{[]diagnostics.Measured{of(1, 0.3), of(3, 0.4)}, []float64{1, 1}, of(2, 1)},
		{[]diagnostics.Measured{of(1, none), of(3, none)}, []float64{2, 2}, of(2, 1)},
		{[]diagnostics.Measured{of(1, 3), of(2, 1)}, []float64{1, 3}, of(1.75, math.Sqrt(18)/4)},
	} {
		var e estimates
		for i := range c.measured {
			e.add(&c.measured[i], c.shares[i])
		}
		got := e.mean()
		if math.Abs(float64(got.Value-c.want.Value)) > 1e-12 || math.Abs(float64(got.StandardError-c.want.StandardError)) > 1e-12 {
			t.Errorf("%v by %v: %v, want %v", c.measured, c.shares, *got, c.want)
		}
	}
	if got := (estimates{}).mean(); got != nil {
		t.Errorf("of none: %v", got)
	}
}
