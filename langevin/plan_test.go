package langevin

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/pollen-ml/pollen/internal/fixedseed"
)

func drawPlan(t *rapid.T) Plan {
	p := Plan{
		BurnIn:   rapid.IntRange(0, 300).Draw(t, "burn-in"),
		Thinning: rapid.IntRange(1, 80).Draw(t, "thinning"),
	}
	p.Steps = p.BurnIn + p.Thinning + rapid.IntRange(0, 500).Draw(t, "more steps")
	if p.Cycles = rapid.IntRange(0, 5).Draw(t, "cycles"); p.Cycles > 1 {
		p.Steps *= p.Cycles
		// A plan has at least as many steps as cycles.
		p.Steps -= rapid.IntRange(0, min(p.Cycles-1, p.Steps-p.Cycles)).Draw(t, "steps that the last cycle lacks")
	}
	return p
}

// TestPlanCycles compares cyclical plans with the paper: r(k) = mod(k-1, ceil(K/M))/ceil(K/M) is
// the fraction of the cycle that is over before step k = 1, 2, ..., which explores while r(k) <
// beta.
func TestPlanCycles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cycles := rapid.IntRange(1, 6).Draw(t, "M")
		steps := cycles * rapid.IntRange(8, 40).Draw(t, "K/M")
		steps -= rapid.IntRange(0, cycles-1).Draw(t, "K")
		beta := float64(rapid.IntRange(0, 7).Draw(t, "8 beta")) / 8
		length, samples := (steps+cycles-1)/cycles, 0
		p := Plan{Steps: steps, BurnIn: int(math.Ceil(beta * float64(length))), Thinning: 1, Cycles: cycles}
		temperatures, err := p.Temperatures(SGLD{}, 0.7)
		if err != nil || len(temperatures) != steps {
			t.Fatalf("%d temperatures (%v), want %d", len(temperatures), err, steps)
		}
		for k := 1; k <= steps; k++ {
			explores := float64((k-1)%length)/float64(length) < beta
			if (temperatures[k-1] == 0) != explores || !explores && temperatures[k-1] != 0.7 {
				t.Fatalf("%+v: step %d has temperature %v; it explores: %v", p, k, temperatures[k-1], explores)
			}
			if p.SampleAt(k) == explores {
				t.Fatalf("%+v: the state after step %d is a sample: %v; it explores: %v", p, k, p.SampleAt(k), explores)
			}
			if !explores {
				samples++
			}
		}
		if samples != p.Samples() {
			t.Fatalf("%+v: %d samples, and Samples says %d", p, samples, p.Samples())
		}
	})
}

// TestPlanRefusesSamplers: samplers that would not sample from the posterior under a plan are
// errors.
func TestPlanRefusesSamplers(t *testing.T) {
	cyclical := Plan{Steps: 100, BurnIn: 20, Thinning: 5, Cycles: 2}
	plain := Plan{Steps: 100, BurnIn: 20, Thinning: 5}
	frozen := func(at int) PSGLD { return PSGLD{Alpha: 0.9, Lambda: 1, Gamma: GammaFrozen, FreezeAt: at} }
	preconditioned := func(at int) PSGHMC {
		return PSGHMC{Friction: 0.1, Alpha: 0.9, Lambda: 1, Gamma: GammaFrozen, FreezeAt: at}
	}
	for _, c := range []struct {
		plan        Plan
		sampler     Sampler
		temperature float64
		right       bool
	}{
		{cyclical, SGLD{}, 1, true}, {plain, SGLD{}, 1, true}, {cyclical, SGLD{}, 0, true},
		{cyclical, SGHMC{Friction: 0.1}, 1, true}, {cyclical, BAOAB{Friction: 0.1}, 1, true},
		{plain, SGNHT{Friction: 0.1, Splitting: SplittingEuler, Coupling: 1e-3}, 1, true},
		{cyclical, SGNHT{Friction: 0.1, Splitting: SplittingEuler, Coupling: 1e-3}, 1, true},
		{cyclical, KSGLD{FreezeAt: 20, Rest: FisherSGLD{FreezeAt: 20}}, 1, true}, {cyclical, KSGLD{FreezeAt: 20, Rest: FisherSGLD{FreezeAt: 21}}, 1, false},
		{cyclical, KSGLD{FreezeAt: 20, Rest: SGNHT{Friction: 0.1, Splitting: SplittingEuler, Coupling: 1e-3}}, 1, true}, {cyclical, KSGLD{FreezeAt: 20}, 1, true},
		{cyclical, frozen(20), 1, true}, {cyclical, frozen(21), 1, false}, {plain, frozen(20), 1, true}, {plain, frozen(21), 1, false},
		{cyclical, preconditioned(20), 1, true}, {cyclical, preconditioned(21), 1, false},
		{cyclical, SGLD{}, -1, false}, {cyclical, SGLD{}, math.NaN(), false}, {cyclical, SGLD{}, math.Inf(1), false}, {Plan{}, SGLD{}, 1, false},
		{Plan{Steps: 10, Thinning: 1, Cycles: 11}, SGLD{}, 1, false}, {Plan{Steps: 10, BurnIn: 3, Thinning: 3, Cycles: 2}, SGLD{}, 1, false},
	} {
		table, err := c.plan.Temperatures(c.sampler, c.temperature)
		if (err == nil) != c.right || c.right && len(table) != c.plan.Steps {
			t.Errorf("%+v, %+v, temperature %v: %d temperatures, error %v", c.plan, c.sampler, c.temperature, len(table), err)
		}
	}
}

// TestPlanWindows steps through plans by their windows: every step once, and a stop at every
// sample.
func TestPlanWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		most := rapid.IntRange(1, 200).Draw(t, "most")
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		samples, last := 0, 0
		for step := 0; step < p.Steps; {
			n := p.windowFrom(step, most)
			if n < 1 || n > most || step+n > p.Steps {
				t.Fatalf("%+v: after step %d a window of %d steps, want 1 to %d within the plan", p, step, n, most)
			}
			for inside := step + 1; inside < step+n; inside++ {
				if p.SampleAt(inside) {
					t.Fatalf("%+v: the window of %d steps after step %d passes over a sample at %d", p, n, step, inside)
				}
			}
			step += n
			if p.SampleAt(step) {
				samples++
				if want := p.BurnIn + samples*p.Thinning; p.Cycles == 0 && step != want {
					t.Fatalf("%+v: sample %d after step %d, want %d", p, samples, step, want)
				}
				last = step
			}
		}
		if samples != p.Samples() || samples < 1 {
			t.Fatalf("%+v: %d samples, and Samples says %d", p, samples, p.Samples())
		}
		if p.Cycles == 0 && p.Steps-last >= p.Thinning {
			t.Fatalf("%+v: no sample in the last %d steps", p, p.Steps-last)
		}
		if p.SampleAt(0) || p.SampleAt(p.BurnIn) {
			t.Fatalf("%+v: a sample before or at the end of burn-in", p)
		}
	})
}

// TestPlanWindowsAreLong: a window ends at a sample, at the limit, or at the end of the plan, and
// nowhere else.
func TestPlanWindowsAreLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		most := rapid.IntRange(1, 200).Draw(t, "most")
		step := rapid.IntRange(0, p.Steps-1).Draw(t, "step")
		n := p.windowFrom(step, most)
		if end := step + n; n != most && end != p.Steps && !p.SampleAt(end) {
			t.Fatalf("%+v: after step %d a window of %d steps ends for no reason", p, step, n)
		}
	})
}

func TestPlanValidate(t *testing.T) {
	for _, p := range []Plan{
		{}, {Steps: 1}, {Steps: 10, Thinning: -1}, {Steps: 10, BurnIn: -1, Thinning: 1}, {Steps: 10, BurnIn: 10, Thinning: 1},
		{Steps: 10, BurnIn: 5, Thinning: 6}, {Steps: -5, BurnIn: -10, Thinning: 1},
		{Steps: 10, Thinning: 1, Cycles: -1}, {Steps: 10, Thinning: 1, Cycles: 11}, {Steps: 10, BurnIn: 4, Thinning: 2, Cycles: 2},
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

// TestInvalidPlan: a plan that Validate refuses has no samples.
func TestInvalidPlan(t *testing.T) {
	for _, p := range []Plan{{}, {Steps: 10}, {Cycles: 1}, {Steps: 10, BurnIn: 10, Thinning: 1}, {Steps: 2, Thinning: 1, Cycles: 3}} {
		if p.Samples() != 0 || p.SampleAt(10) {
			t.Errorf("%+v: %d samples, a sample after step 10: %v", p, p.Samples(), p.SampleAt(10))
		}
	}
	if cycle := (Plan{Cycles: 1}).CycleAt(10); cycle != 0 {
		t.Errorf("without steps, step 10 is in cycle %d", cycle)
	}
}

// Cycles of 28 steps in three have 10, 10 and 8.
func TestCycleAt(t *testing.T) {
	p := Plan{Steps: 28, Cycles: 3}
	for step, want := range map[int]int{1: 0, 10: 0, 11: 1, 20: 1, 21: 2, 28: 2} {
		if got := p.CycleAt(step); got != want {
			t.Errorf("step %d is in cycle %d, want %d", step, got, want)
		}
	}
	if got := (Plan{Steps: 28}).CycleAt(28); got != 0 {
		t.Errorf("without cycles the cycle is %d, want 0", got)
	}
}
