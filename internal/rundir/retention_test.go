package rundir

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/pollen-ml/pollen/internal/fixedseed"
	"github.com/pollen-ml/pollen/langevin"
)

// The kept samples are those that remain if every other one is dropped whenever there are too
// many.
func TestRetention(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Retention{Plan: langevin.Plan{
			BurnIn: rapid.IntRange(0, 20).Draw(t, "burn-in"), Thinning: rapid.IntRange(1, 5).Draw(t, "thinning"),
		}, Keep: rapid.IntRange(1, 9).Draw(t, "most")}
		r.Plan.Steps = r.Plan.BurnIn + rapid.IntRange(r.Plan.Thinning, 300).Draw(t, "steps")
		var there []int // as numbers among all that the plan has
		every := 1
		for step := 1; step <= r.Plan.Steps; step++ {
			number := (step - r.Plan.BurnIn) / r.Plan.Thinning
			var went []int
			if r.Plan.SampleAt(step) {
				if number%every == 0 {
					there = append(there, number)
				}
				if len(there) > r.Keep {
					every *= 2
					there = slices.DeleteFunc(there, func(n int) bool {
						if n%every != 0 && n != number {
							went = append(went, r.Plan.BurnIn+n*r.Plan.Thinning)
						}
						return n%every != 0
					})
				}
			}
			if gone := r.droppedBetween(step-1, step); !slices.Equal(gone, went) {
				t.Fatalf("%+v: step %d: %v go, want %v", r, step, gone, went)
			}
			for at := 1; at <= step; at++ {
				want := r.Plan.SampleAt(at) && slices.Contains(there, (at-r.Plan.BurnIn)/r.Plan.Thinning)
				if r.Has(at, step) != want {
					t.Fatalf("%+v: step %d: there is a sample of %d: %t, want %t", r, step, at, !want, want)
				}
			}
		}
		if r.Samples() != len(there) || len(there) < 1 || len(there) > r.Keep {
			t.Fatalf("%+v: %d samples at the end, want %d", r, r.Samples(), len(there))
		}
	})
}
