package evaluate

import (
	"math"
	"testing"
)

// A class is ranked by its own probability; ties count half, and a class without examples, or
// without others, has no ranking.
func TestRankingOf(t *testing.T) {
	p := predictionsOf(t, []float64{0.9, 0.1, 0.4, 0.6, 0.4, 0.6, 0.2, 0.8, 0.1, 0.9}, []int32{0, 0, 1, 1, 1}, 2)
	for class, want := range map[int]Ranking{0: {5.5 / 6, (1 + 2./3) / 2}, 1: {5.5 / 6, (2 + 3./4) / 3}} {
		if got, ok := RankingOf(p, class); !ok || math.Abs(got.AUROC-want.AUROC)+math.Abs(got.AveragePrecision-want.AveragePrecision) > 1e-12 {
			t.Errorf("class %d: %+v, %v, want %+v", class, got, ok, want)
		}
	}
	p.Labels = []int32{0, 0, 0, 0, 0}
	for class := range 2 {
		if got, ok := RankingOf(p, class); ok || got != (Ranking{}) {
			t.Errorf("class %d without others: %+v, %v", class, got, ok)
		}
	}
}
