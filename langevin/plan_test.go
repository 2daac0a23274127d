package langevin

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawPlan(t *rapid.T) Plan {
	p := Plan{
		BurnIn:   rapid.IntRange(0, 300).Draw(t, "burn-in"),
		Thinning: rapid.IntRange(1, 80).Draw(t, "thinning"),
	}
	p.Steps = p.BurnIn + p.Thinning + rapid.IntRange(0, 500).Draw(t, "more steps")
	return p
}

// TestPlanWindows walks through plans by their windows: every step once, and a stop at every sample.
func TestPlanWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		most := rapid.IntRange(1, 200).Draw(t, "most")
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		samples, last := 0, 0
		for step := 0; step < p.Steps; {
			n := p.window(step, most)
			if n < 1 || n > most || step+n > p.Steps {
				t.Fatalf("%+v: after step %d a window of %d steps, wants 1 to %d within the plan", p, step, n, most)
			}
			for inside := step + 1; inside < step+n; inside++ {
				if p.sampleAt(inside) {
					t.Fatalf("%+v: the window of %d steps after step %d passes over a sample at %d", p, n, step, inside)
				}
			}
			step += n
			if p.sampleAt(step) {
				samples++
				if want := p.BurnIn + samples*p.Thinning; step != want {
					t.Fatalf("%+v: sample %d after step %d, want %d", p, samples, step, want)
				}
				last = step
			}
		}
		if samples != p.Samples() || samples < 1 {
			t.Fatalf("%+v: %d samples, and Samples says %d", p, samples, p.Samples())
		}
		if p.Steps-last >= p.Thinning {
			t.Fatalf("%+v: no sample in the last %d steps", p, p.Steps-last)
		}
		if p.sampleAt(0) || p.sampleAt(p.BurnIn) {
			t.Fatalf("%+v: a sample before or at the end of burn-in", p)
		}
	})
}

// TestPlanWindowsAreLong: a window ends at a sample, at the limit, or at the end of the plan, and nowhere else.
func TestPlanWindowsAreLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		most := rapid.IntRange(1, 200).Draw(t, "most")
		step := rapid.IntRange(0, p.Steps-1).Draw(t, "step")
		n := p.window(step, most)
		if end := step + n; n != most && end != p.Steps && !p.sampleAt(end) {
			t.Fatalf("%+v: after step %d a window of %d steps ends for no reason", p, step, n)
		}
	})
}

func TestPlanValidate(t *testing.T) {
	for _, p := range []Plan{
		{}, {Steps: 1}, {Steps: 10, Thinning: -1}, {Steps: 10, BurnIn: -1, Thinning: 1}, {Steps: 10, BurnIn: 10, Thinning: 1},
		{Steps: 10, BurnIn: 5, Thinning: 6}, {Steps: -5, BurnIn: -10, Thinning: 1},
		{Steps: 10, BurnIn: math.MaxInt, Thinning: 1}, {Steps: 10, BurnIn: 1, Thinning: math.MaxInt},
	} {
		if err := p.Validate(); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
	for _, p := range []Plan{{Steps: 1, Thinning: 1}, {Steps: 10, BurnIn: 5, Thinning: 5}, {Steps: math.MaxInt, Thinning: 1}} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}
