package pollen

import (
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// retention says which samples of a plan stay, see Spec.Keep. That is a function of how many steps
// were made and of nothing else, so that a run that was killed goes on to the same files.
//
// The samples that go are listed as dropped, then the checkpoint is written, and only then they are
// removed: until there is a checkpoint after them, the run can go on from the one before. From the
// older one of both it goes on without them; they would go again.
type retention struct {
	plan langevin.Plan
	most int // of each chain; 0 for all
}

func (t *training) retention() retention { return retention{t.plan, t.spec.Keep} }

// drawn is how many samples of each chain the plan has by a step.
func (r retention) drawn(step int) int { return max(0, step-r.plan.BurnIn) / r.plan.Thinning }

// interval is n where one in n of the plan's samples stays once that many steps were made.
func (r retention) interval(made int) int {
	n := 1
	for r.most > 0 && r.drawn(made)/n > r.most {
		n *= 2
	}
	return n
}

// has reports whether the state at a step is a sample that the run has once that many were made.
func (r retention) has(step, made int) bool {
	return r.plan.SampleAt(step) && (r.most == 0 || r.drawn(step)%r.interval(made) == 0)
}

// samples is how many samples of each chain the finished run has.
func (r retention) samples() int { return r.plan.Samples() / r.interval(r.plan.Steps) }

// gone are the steps of samples that the run had once and that went in the steps between two.
func (r retention) gone(from, to int) (steps []int) {
	last := r.interval(to)
	for n := r.interval(from); n < last; n *= 2 {
		for odd := 1; odd <= r.most; odd += 2 {
			steps = append(steps, r.plan.BurnIn+odd*n*r.plan.Thinning)
		}
	}
	return steps
}

// dropped are the lines of the samples of all chains that went in the steps between two.
func (t *training) dropped(from, to int) (lines []indexLine) {
	for _, step := range t.retention().gone(from, to) {
		for chain := range t.spec.Chains {
			lines = append(lines, indexLine{File: samplesFolder + "/" + samples.NameOf(t.spec.FirstChain+chain, step), Dropped: true})
		}
	}
	return lines
}

// drop removes samples that the index lists as dropped, and reports how many there were.
func (t *training) drop(lines []indexLine) (removed int, err error) {
	if len(lines) == 0 {
		return 0, nil
	}
	if err := t.stillHeld(); err != nil {
		return 0, err
	}
	for _, l := range lines {
		err := os.Remove(filepath.Join(t.folder, filepath.FromSlash(l.File)))
		if err == nil {
			removed++
		} else if !os.IsNotExist(err) { // lost before, or removed by a process that was killed then
			return removed, errors.Wrap(err, "pollen: run folder")
		}
	}
	return removed, nil
}

// wasDropped reports whether a sample's file is not there, or goes, because its run keeps no more:
// a process that samples may have dropped it since the index was read.
func wasDropped(path string) bool {
	bank, name := filepath.Split(path)
	x, err := readIndex(filepath.Dir(filepath.Clean(bank)))
	return err == nil && x.lines[samplesFolder+"/"+name].Dropped
}

// droppedMeanwhile is the error of reading samples while a process drops some: the average of what
// is left and what was read before would count some steps twice.
func (r *Run) droppedMeanwhile() error {
	return errors.Errorf("pollen: %s dropped samples while they were read, to keep no more than %d of a chain: try again", r.folder, r.manifest.Spec.Keep)
}
