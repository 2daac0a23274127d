package rundir

import (
	"github.com/pollen-ml/pollen/langevin"
)

// Retention decides which samples of a plan a run keeps: all, or at most Keep of each chain. When
// there would be more, every other one is dropped, and from then on only every other one is
// written. What is kept follows from the number of steps made and from nothing else, so that a run
// that was killed continues to the same files.
//
// Samples are dropped in three steps: they are listed as dropped, the checkpoint is written, and
// only then they are removed, so that a run whose process is killed in between can continue from
// the checkpoint before. A run that continues from the older of its two checkpoints may lack them;
// they would be dropped again.
type Retention struct {
	Plan langevin.Plan
	Keep int // of each chain; 0 for all
}

// drawn returns how many samples of each chain the plan has by a step. Plans with cycles cannot
// have a Keep.
func (r Retention) drawn(step int) int { return max(0, step-r.Plan.BurnIn) / r.Plan.Thinning }

// interval returns n, a power of 2, where one in n of the plan's samples is kept after made steps.
// With Keep 10, n is 1 up to 10 samples, 2 from the 11th on, 4 from the 22nd on.
func (r Retention) interval(made int) int {
	n := 1
	for r.Keep > 0 && r.drawn(made)/n > r.Keep {
		n *= 2
	}
	return n
}

// Has reports whether a run that has made some steps keeps the state at step as a sample.
func (r Retention) Has(step, made int) bool {
	return r.Plan.SampleAt(step) && (r.Keep == 0 || r.drawn(step)%r.interval(made) == 0)
}

// Samples returns how many samples of each chain the finished run has.
func (r Retention) Samples() int { return r.Plan.Samples() / r.interval(r.Plan.Steps) }

// droppedBetween returns the steps of the samples that are dropped between two steps. When n
// doubles, the samples are the draws n, 2n, ... Keep n, and those at odd multiples of n are
// dropped.
func (r Retention) droppedBetween(from, to int) (steps []int) {
	last := r.interval(to)
	for n := r.interval(from); n < last; n *= 2 {
		for odd := 1; odd <= r.Keep; odd += 2 {
			steps = append(steps, r.Plan.BurnIn+odd*n*r.Plan.Thinning)
		}
	}
	return steps
}
