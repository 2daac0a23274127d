package strided

import (
	"testing"

	"pgregory.net/rapid"

	_ "github.com/pollen-ml/pollen/internal/fixedseed"
)

// Lines visits the offsets that At computes, each once and in order, also of a layout with merged
// axes.
func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Layout
		for range rapid.IntRange(1, MaxAxes).Draw(t, "axes") {
			w.Add(rapid.IntRange(1, 4).Draw(t, "extent"), rapid.IntRange(0, 8).Draw(t, "stride"))
		}
		merged := w.Merged()
		if merged.Count() != w.Count() || merged.Axes > w.Axes {
			t.Fatalf("%v merges to %v", w, merged)
		}
		lo := rapid.IntRange(0, w.Count()-1).Draw(t, "lo")
		hi := rapid.IntRange(lo+1, w.Count()).Draw(t, "hi")
		next := lo
		merged.Lines(lo, hi, func(i, offset, n int) {
			if i != next || n < 1 {
				t.Fatalf("element %d is visited after %d, and %d more", i, next-1, n)
			}
			for ; n > 0; n-- {
				if want := w.At(next); offset != want {
					t.Fatalf("element %d of %v is at %d, want %d", next, w, offset, want)
				}
				next, offset = next+1, offset+merged.Strides[merged.Axes-1]
			}
		})
		if next != hi {
			t.Fatalf("elements up to %d are visited, want %d", next, hi)
		}
	})
}

// Merged merges the axes of a contiguous tensor into one.
func TestMerged(t *testing.T) {
	var w Layout
	w.Add(2, 12)
	w.Add(1, 5)
	w.Add(3, 4)
	w.Add(4, 1)
	if m := w.Merged(); m.Axes != 1 || m.Extents[0] != 24 || m.Strides[0] != 1 {
		t.Errorf("%v", m)
	}
}
