package langevin

import (
	"context"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// Plan sets how long chains run and which of their states are samples: after BurnIn steps, the
// states after every Thinning steps.
//
// With Cycles it is cyclical sampling (Zhang, Li, Zhang, Chen and Wilson 2020), with any Sampler. A
// cycle has ceil(Steps/Cycles) steps. Its first BurnIn steps explore at temperature 0, the others
// sample. The paper's beta is BurnIn over the length of a cycle, and its step sizes h_k = h_0/2
// (cos(pi mod(k-1, L)/L) + 1) are the schedule optimizers.Cyclical. A plan that Validate refuses
// has no samples.
type Plan struct {
	Steps    int
	BurnIn   int // of each cycle if there are cycles
	Thinning int // at least 1
	Cycles   int // M; 0 for a plan without cycles, 1 for a run that explores once
}

// Validate reports plans that yield no sample.
func (p Plan) Validate() error {
	switch {
	case p.Steps < 1:
		return errors.Errorf("langevin: plan: Steps must be at least 1, got %d", p.Steps)
	case p.Thinning < 1:
		return errors.Errorf("langevin: plan: Thinning must be at least 1, which makes every step after BurnIn a sample, got %d", p.Thinning)
	case p.BurnIn < 0:
		return errors.Errorf("langevin: plan: BurnIn must be at least 0, got %d", p.BurnIn)
	case p.Cycles < 0 || p.Cycles > p.Steps:
		return errors.Errorf("langevin: plan: Cycles must be 0 to the %d Steps, got %d", p.Steps, p.Cycles)
	case p.Thinning > p.cycle()-p.BurnIn && p.Cycles > 0:
		return errors.Errorf("langevin: plan: BurnIn + Thinning must be at most the %d steps of a cycle, so that it has a sample, got %d + %d",
			p.cycle(), p.BurnIn, p.Thinning)
	case p.Thinning > p.cycle()-p.BurnIn:
		return errors.Errorf("langevin: plan: BurnIn + Thinning must be at most the %d Steps, so that there is a sample, got %d + %d",
			p.Steps, p.BurnIn, p.Thinning)
	}
	return nil
}

// cycle returns the number of steps of a cycle, or of the run if there are no cycles. The last
// cycle may be shorter.
func (p Plan) cycle() int {
	if p.Cycles == 0 {
		return p.Steps
	}
	return (p.Steps-1)/p.Cycles + 1
}

// Samples returns the number of samples of each chain.
func (p Plan) Samples() int {
	if p.Validate() != nil {
		return 0
	}
	length := p.cycle()
	of := func(steps int) int { return max(0, steps-p.BurnIn) / p.Thinning }
	return p.Steps/length*of(length) + of(p.Steps%length)
}

// Temperatures returns the table of temperatures for Attach: the given one, and 0 where a cyclical
// plan explores. A sampler whose preconditioner freezes after the first burn-in is an error,
// because its first samples would be biased.
func (p Plan) Temperatures(sampler Sampler, temperature float64) ([]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if !(temperature >= 0 && temperature < math.Inf(1)) {
		return nil, errors.Errorf("langevin: plan: temperature must be finite and at least 0, got %v", temperature)
	}
	if at := adaptsUntil(sampler); at > p.BurnIn {
		return nil, errors.Errorf("langevin: plan: %s adapts up to step %d, but samples are drawn from step %d on: FreezeAt must be within the first burn-in",
			sampler.Name(), at, p.BurnIn)
	}
	table := make([]float64, p.Steps)
	for step := range table {
		if p.Cycles == 0 || step%p.cycle() >= p.BurnIn {
			table[step] = temperature
		}
	}
	return table, nil
}

// cycleStep returns the number of steps made in the present cycle, at least 1, after the given
// number of steps of the run.
func (p Plan) cycleStep(step int) int { return (step-1)%p.cycle() + 1 }

// CycleAt returns the index, from 0, of the cycle that contains the last of the run's first step
// steps. step must be at least 1. Without cycles or steps CycleAt returns 0.
func (p Plan) CycleAt(step int) int {
	if p.Cycles == 0 || p.Steps == 0 {
		return 0
	}
	return (step - 1) / p.cycle()
}

// SampleAt reports whether the state after the given number of steps is a sample.
func (p Plan) SampleAt(step int) bool {
	if step < 1 || p.Validate() != nil {
		return false
	}
	made := p.cycleStep(step)
	return made > p.BurnIn && (made-p.BurnIn)%p.Thinning == 0
}

// lastSample returns the number of steps after which the last sample is taken.
func (p Plan) lastSample() int {
	last := p.Steps
	for !p.SampleAt(last) {
		last--
	}
	return last
}

// windowFrom returns the number of steps of the window that begins at step: at most the given
// number, and none beyond the next sample.
func (p Plan) windowFrom(step, most int) int {
	made := p.cycleStep(step+1) - 1
	next := p.BurnIn + p.Thinning
	if made >= p.BurnIn {
		next = made + p.Thinning - (made-p.BurnIn)%p.Thinning
	}
	if length := p.cycle(); next > length {
		next = length + p.BurnIn + p.Thinning
	}
	return min(most, p.Steps-step, next-made)
}

// Window is a range of steps that Plan.Run has made without a pause. The observer reads their
// metrics.
type Window struct {
	From, To int  // the steps From to To-1
	Sample   bool // whether the chains' present states are samples
}

// Run makes the plan's steps, beginning with the session's present step, and calls observe after
// each window. A window has at most the given number of steps, from 1 to graph.MetricRows, the
// number of steps whose metrics a session keeps. When the context is done, Run returns the
// context's error at the end of a window. Hooks run at the steps where they are due, after observe.
func (p Plan) Run(ctx context.Context, s *graph.Session, window int, observe func(Window) error, hooks ...Hook) error {
	return p.RunPaced(ctx, s, window, nil, observe, hooks...)
}

// RunPaced is Run with windows in parts, see graph.Session.RunPaced: pace is called with the
// numbers of steps made and left of a window. If it returns the context's error, RunPaced stops
// with it, in the state at the beginning of the window.
func (p Plan) RunPaced(
	ctx context.Context, s *graph.Session, window int, pace graph.Pace, observe func(Window) error, hooks ...Hook,
) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if ctx == nil || s == nil || observe == nil {
		return errors.New("langevin: run: the context, the session and observe must not be nil")
	}
	if err := checkHooks(s, hooks); err != nil {
		return err
	}
	if window < 1 || window > graph.MetricRows {
		return errors.Errorf("langevin: a window must have 1 to %d steps, got %d", graph.MetricRows, window)
	}
	for step := int(s.Steps()); step < p.Steps; step = int(s.Steps()) {
		if err := ctx.Err(); err != nil {
			return p.stopped(err, step)
		}
		steps := p.windowFrom(step, window)
		for _, hook := range hooks {
			if hook.Due(step) {
				if err := hook.OnStep(ctx, s); err != nil {
					return err
				}
			}
			// A hook that is due within the window ends the window there.
			for next := 1; next < steps; next++ {
				if hook.Due(step + next) {
					steps = next
				}
			}
		}
		if err := s.RunPaced(steps, pace); err != nil {
			if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
				return p.stopped(err, step)
			}
			return err
		}
		to := int(s.Steps())
		if err := observe(Window{From: step, To: to, Sample: p.SampleAt(to)}); err != nil {
			return err
		}
	}
	return nil
}

// stopped returns the error of a run whose context ended.
func (p Plan) stopped(err error, made int) error {
	return errors.Wrapf(err, "langevin: run stopped after %d of %d steps", made, p.Steps)
}
