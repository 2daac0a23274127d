package diagnostics

import (
	"math"
	"testing"
)

func TestMeasuredText(t *testing.T) {
	for want, m := range map[string]Measured{
		"8 ± 2": {8.04, 1.71}, "110 ± 40": {112.3, 41}, "0.97 ± 0.05": {0.9735, 0.0514}, "1.04 ± 0.10": {1.04, 0.0996},
		"1 ± NaN": {1, Number(math.NaN())}, "1.23 ± 0": {1.2345, 0},
	} {
		if got := m.String(); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
