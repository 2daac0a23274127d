package bayes

import (
	"slices"
	"testing"
	"time"
)

// TestPacer: windows of slow steps are made in parts of about a second, or of a few steps, and
// windows of fast steps in one part, whatever their speed was before.
func TestPacer(t *testing.T) {
	var clock time.Time
	var reports []int
	p := &pacer{now: func() time.Time { return clock }, size: 1, report: func(made, part int) { reports = append(reports, made, part) }}
	for i, test := range []struct {
		step    time.Duration
		parts   []int
		reports []int
	}{
		{0, []int{1, 4, 16, 64, 15}, nil}, // a clock that is too coarse
		{time.Microsecond, []int{100}, nil},
		{time.Second / 10, []int{100}, nil}, // as fast as before, for all that is known
		{time.Second / 10, []int{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, []int{10, 10, 20, 10, 30, 10, 40, 10, 50, 10, 60, 10, 70, 10, 80, 10, 90, 10}},
		{time.Second, append([]int{10}, append(slices.Repeat([]int{4}, 22), 2)...), nil},
		{8 * time.Second, append([]int{4}, slices.Repeat([]int{1}, 96)...), nil},
		{time.Second / 16, []int{1, 4, 16, 16, 16, 16, 16, 15}, []int{21, 21, 37, 16, 53, 16, 69, 16, 85, 16}},
		{time.Microsecond, []int{16, 64, 20}, nil},
		{time.Microsecond, []int{100}, nil},
	} {
		var parts []int
		reports = nil
		for made := 0; made < 100; {
			part := p.next(made, 100-made)
			parts, made = append(parts, part), made+part
			clock = clock.Add(time.Duration(part) * test.step)
		}
		p.next(100, 0)
		if !slices.Equal(parts, test.parts) {
			t.Errorf("window %d: parts %v, want %v", i, parts, test.parts)
		}
		if want := test.reports; want != nil && !slices.Equal(reports, want) {
			t.Errorf("window %d: reports %v, want %v", i, reports, want)
		}
		if test.step < time.Millisecond && reports != nil {
			t.Errorf("window %d: reports %v of fast steps", i, reports)
		}
	}
}
