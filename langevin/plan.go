package langevin

import (
	"context"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// Plan says how long chains run and which of their states are samples: those after every Thinning steps once BurnIn steps are over.
type Plan struct {
	Steps    int
	BurnIn   int
	Thinning int
}

// Validate refuses plans that yield no sample.
func (p Plan) Validate() error {
	if p.Steps < 1 || p.BurnIn < 0 || p.Thinning < 1 || p.Thinning > p.Steps-p.BurnIn {
		return errors.Errorf("langevin: plan of %d steps, burn-in %d, thinning %d, wants at least one sample: burn-in + thinning <= steps, thinning >= 1",
			p.Steps, p.BurnIn, p.Thinning)
	}
	return nil
}

// Samples is how many samples each chain yields.
func (p Plan) Samples() int { return (p.Steps - p.BurnIn) / p.Thinning }

// sampleAt tells whether the state after that many steps is a sample.
func (p Plan) sampleAt(step int) bool { return step > p.BurnIn && (step-p.BurnIn)%p.Thinning == 0 }

// window is how many steps can run after step before someone has to look: at the latest until the next sample.
func (p Plan) window(step, most int) int {
	n := min(most, p.Steps-step)
	next := p.BurnIn + p.Thinning
	if step >= p.BurnIn {
		next = step + p.Thinning - (step-p.BurnIn)%p.Thinning
	}
	return min(n, next-step)
}

// Progress is what a run's observer sees after each window of steps.
type Progress struct {
	From, To int  // the steps of the window: From to To-1
	Sample   bool // the chains' states now are a sample
}

// Run makes the plan's steps, from where the session stands, in windows of at most most steps, and calls observe after each. It ends
// early, with the context's error, when the context is done: between windows, so that the session's state is whole.
func (p Plan) Run(ctx context.Context, s *graph.Session, most int, observe func(Progress) error) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if most < 1 || most > graph.MetricRows {
		return errors.Errorf("langevin: windows of %d steps, wants 1 to %d", most, graph.MetricRows)
	}
	for step := int(s.Steps()); step < p.Steps; step = int(s.Steps()) {
		if err := ctx.Err(); err != nil {
			return errors.Wrapf(err, "langevin: run stopped after %d of %d steps", step, p.Steps)
		}
		if err := s.Run(p.window(step, most)); err != nil {
			return err
		}
		to := int(s.Steps())
		if err := observe(Progress{From: step, To: to, Sample: p.sampleAt(to)}); err != nil {
			return err
		}
	}
	return nil
}
