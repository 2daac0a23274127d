package mcmc

import (
	"slices"
	"testing"
)

// TestWarmupWindows: the lengths of Stan's reference manual for 1000 draws, and parts in order for
// all numbers.
func TestWarmupWindows(t *testing.T) {
	if from, ends := warmupWindows(1000); from != 75 || !slices.Equal(ends, []int{100, 150, 250, 450, 950}) {
		t.Errorf("1000 draws: windows from %d end at %v", from, ends)
	}
	for draws := range 3000 {
		from, ends := warmupWindows(draws)
		for i, end := range ends {
			begin := from
			if i > 0 {
				begin = ends[i-1]
			}
			if end-begin < 20 {
				t.Fatalf("%d draws: windows from %d end at %v: one is too short", draws, from, ends)
			}
		}
		if len(ends) > 0 && draws-ends[len(ends)-1] < 10 || draws >= 40 && len(ends) == 0 {
			t.Fatalf("%d draws: windows from %d end at %v", draws, from, ends)
		}
	}
}
