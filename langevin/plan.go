package langevin

import (
	"context"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// Plan says how long chains run and which of their states are samples: those after every Thinning
// steps once BurnIn steps are over.
//
// With Cycles it is cyclical sampling (Zhang, Li, Zhang, Chen and Wilson 2020), with any Sampler:
// in each cycle of ceil(Steps/Cycles) steps the first BurnIn explore, at the temperature
// 0, and the rest sample. Their beta is BurnIn over the length of a cycle, their step sizes h_k =
// h_0/2 (cos(pi mod(k-1, L)/L) + 1) are the schedule optimizers.Cyclical.
type Plan struct {
	Steps    int
	BurnIn   int // of each cycle, if there are any
	Thinning int
	Cycles   int // M; 0 for a plan without cycles, 1 for a run that explores once
}

// Validate refuses plans that yield no sample.
func (p Plan) Validate() error {
	if p.Steps < 1 || p.BurnIn < 0 || p.Thinning < 1 || p.Cycles < 0 || p.Cycles > p.Steps || p.Thinning > p.cycle()-p.BurnIn {
		return errors.Errorf("langevin: plan: each cycle must have a sample: Steps >= Cycles, BurnIn + Thinning <= steps of a cycle, Thinning >= 1, got %+v", p)
	}
	return nil
}

// cycle is the number of steps of a cycle: all steps without cycles. The last one may be shorter.
func (p Plan) cycle() int {
	if p.Cycles == 0 {
		return p.Steps
	}
	return (p.Steps-1)/p.Cycles + 1
}

// Samples is how many samples each chain yields.
func (p Plan) Samples() int {
	length := p.cycle()
	of := func(steps int) int { return max(0, steps-p.BurnIn) / p.Thinning }
	return p.Steps/length*of(length) + of(p.Steps%length)
}

// Temperatures is the table of temperatures for Attach: 0 where a cyclical plan explores. It
// refuses samplers that the plan makes sample wrongly: those that freeze a preconditioner after the
// first burn-in.
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

// withRest are a sampler and the one to which it leaves some of the parameters, if any.
func withRest(sampler Sampler) []Sampler {
	if k, ok := sampler.(KSGLD); ok && k.Rest != nil {
		return []Sampler{sampler, k.Rest}
	}
	return []Sampler{sampler}
}

// within is how many steps of its cycle the chain has made after that many of the run, at least 1.
func (p Plan) cycleStep(step int) int { return (step-1)%p.cycle() + 1 }

// SampleAt reports whether the state after that many steps is a sample.
func (p Plan) SampleAt(step int) bool {
	if step < 1 {
		return false
	}
	made := p.cycleStep(step)
	return made > p.BurnIn && (made-p.BurnIn)%p.Thinning == 0
}

// window is how many steps can run after step before an observer is due: at the latest until the
// next sample.
func (p Plan) window(step, most int) int {
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

// Window is what a run's observer sees after each window of steps.
type Window struct {
	From, To int  // the steps of the window: From to To-1
	Sample   bool // the chains' states now are a sample
}

// Hook is what the host does to a session's chains between two steps. What it does depends
// only on the chains' state.
type Hook interface {
	// Due reports whether it is to be done after that many steps, from 0 on.
	Due(steps int) bool
	// OnStep does it. It may end early, with the context's error, if the chains' states are then
	// as they were before.
	OnStep(ctx context.Context, s *graph.Session) error
}

// Run makes the plan's steps, from where the session stands, in windows of at most most steps, and
// calls observe after each. It ends between windows, with the context's error, when the context is
// done. Interventions take place where they are due, after observe.
func (p Plan) Run(ctx context.Context, s *graph.Session, most int, observe func(Window) error, hooks ...Hook) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if most < 1 || most > graph.MetricRows {
		return errors.Errorf("langevin: a window must have 1 to %d steps, got %d", graph.MetricRows, most)
	}
	for step := int(s.Steps()); step < p.Steps; step = int(s.Steps()) {
		if err := ctx.Err(); err != nil {
			return errors.Wrapf(err, "langevin: run stopped after %d of %d steps", step, p.Steps)
		}
		steps := p.window(step, most)
		for _, hook := range hooks {
			if hook.Due(step) {
				if err := hook.OnStep(ctx, s); err != nil {
					return err
				}
			}
			for next := 1; next < steps; next++ {
				if hook.Due(step + next) {
					steps = next
				}
			}
		}
		if err := s.Run(steps); err != nil {
			return err
		}
		to := int(s.Steps())
		if err := observe(Window{From: step, To: to, Sample: p.SampleAt(to)}); err != nil {
			return err
		}
	}
	return nil
}
