package bayes

import (
	"context"
	"fmt"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// maxRetrainings is the maximum number of times that a chain of a method that does not sample is
// trained again. The run fails if the chain diverges at 1/32 of its learning rate, too.
const maxRetrainings = 5

// retrains reports whether a chain that diverges is trained again from its initial values, at half
// its learning rate: methods that do not sample lose nothing but time by it. The states that SWAG
// keeps after burn-in cannot be taken back.
func (t *training) retrains() bool {
	return t.halves && t.warmUp == nil && (!t.kind.traits().collected || int(t.session.Steps()) <= t.plan.BurnIn)
}

// worseThanGuessing is the ratio to the loss of guessing above which a loss at the end of a
// training shows that a chain exploded, provided that its loss was lower at first. The losses of a
// few steps of Adam on few images may be three times as high.
const worseThanGuessing = 10

// checkEnd returns an explodedError at the end of a training if a chain that would be trained again
// has weights whose predictions are not finite, or a loss that is far above the loss of guessing
// and above the loss of its first step. Only the cross-entropy is checked, whose scale is known.
func (t *training) checkEnd(p langevin.Window) error {
	if p.To < t.plan.Steps || !t.retrains() {
		return nil
	}
	const last = 10
	guessing := guessing(t.data, t.classWeights)
	for i := range t.session.Chains() {
		state, err := samples.FromSession(t.session, i, 1)
		if err != nil {
			return err
		}
		state.Chain, state.Step = t.spec.FirstChain+i, p.To
		if t.meanField == nil { // whose parameters are not only weights
			if err := t.probe.Check(state); err != nil {
				return &explodedError{i, p, err}
			}
		}
		if t.kind.traits().dirichlet {
			continue
		}
		before := t.session.Metric(i, lossMetric, 0)
		if p.From > 0 {
			before = t.measured.FirstLoss(i)
		}
		loss, from := 0.0, max(p.From, p.To-last)
		for step := from; step < p.To; step++ {
			loss += t.session.Metric(i, lossMetric, uint64(step)) / float64(p.To-from)
		}
		if loss > max(worseThanGuessing*guessing, before) {
			return &explodedError{i, p, errors.Errorf("chain %d has a loss of %.3g in the last steps, after %.3g in the first, and guessing has %.3g",
				t.spec.FirstChain+i, loss, before, guessing)}
		}
	}
	return nil
}

// retrain trains a chain that diverged again, from its initial values to the step where the others
// are, at half its learning rate. The other chains are trained along with it and arrive at the same
// bits, so the result equals a run in which the chain had the lower rate from the beginning. It
// returns err, the cause, if the chain was trained again too often.
func (t *training) retrain(ctx context.Context, err error) error {
	s := t.session
	halvings, failed := t.halvings()
	if failed != nil {
		return failed
	}
	// goBack reads this checkpoint. Copies in memory would have to be counted by the estimate.
	// The window of an explodedError is not observed yet: goBack reads an earlier checkpoint then.
	var exploded *explodedError
	if atEnd := errors.As(err, &exploded); !atEnd {
		if err := t.saveNow(); err != nil {
			return err
		}
	} else if err := t.writer.Wait(); err != nil {
		return err
	}
	to := int(s.Steps())
	for {
		i, step, ok := divergedChain(err, t.spec.FirstChain)
		if !ok {
			break
		}
		if halvings[i] == maxRetrainings {
			err = errors.WithMessagef(err, "at 1/%d of its learning rate, too", 1<<maxRetrainings)
			break
		}
		halvings[i]++
		t.remark(fmt.Sprintf("chain %d diverged in step %d, and is trained again from its initial values at 1/%d of the learning rate",
			t.spec.FirstChain+i, step, 1<<halvings[i]))
		cause := err
		if err = t.rewind(halvings); err != nil {
			err = errors.WithMessagef(err, "%v; to train the chain again", cause)
			break
		}
		if err = t.makeAgain(ctx, to); err == nil && exploded != nil {
			err = t.checkEnd(exploded.window)
		}
		if err == nil {
			return nil
		}
	}
	if failed := t.goBack(); failed != nil {
		return failed
	}
	return err
}

// goBack restores the last checkpoint: its states are those that the measurements belong to.
func (t *training) goBack() error {
	c, err := t.writer.Last()
	if err != nil {
		return err
	}
	return t.restore(c)
}

// halvings returns how often the learning rate of each chain was halved.
func (t *training) halvings() (halvings []int, err error) {
	halvings = make([]int, t.session.Chains())
	for chain := range halvings {
		if halvings[chain], err = t.halvingsOf(chain); err != nil {
			return nil, err
		}
	}
	return halvings, nil
}

// keepsFirst reports whether the run keeps its checkpoint at step 0 for retrain: the chains begin
// at the weights of another run, which may have changed or be gone when they are trained again.
func (t *training) keepsFirst() bool {
	return t.halves && t.warmUp == nil && (t.spec.Start != "" || t.teaching.starts())
}

// rewind gives all chains the states with which they began, at step 0, and numbers of halvings.
func (t *training) rewind(halvings []int) (err error) {
	var first rundir.Checkpoint
	if t.keepsFirst() {
		if first, err = t.writer.First(); err == nil {
			err = t.checkStates(first)
		}
		if err != nil {
			return err
		}
	}
	t.teaching.rewind()
	s, state := t.session, make([]byte, t.session.ChainBytes())
	for chain, number := range halvings {
		if first.Chains != nil {
			err = s.Restore(chain, first.Chains[chain], 0)
		} else if err = s.Restart(chain); err == nil {
			err = s.SetStep(chain, 0)
		}
		if err == nil {
			err = setRateFactor(s, chain, number)
		}
		if err == nil {
			err = s.Save(chain, state)
		}
		if err == nil {
			err = s.Restore(chain, state, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeAgain makes the first steps of a run again, without recording them.
func (t *training) makeAgain(ctx context.Context, steps int) error {
	if steps == 0 {
		return nil
	}
	plan := langevin.Plan{Steps: steps, Thinning: steps}
	const task = "train again"
	pace := t.pace(ctx, task, t.data.Name, steps)
	return plan.RunPaced(ctx, t.session, t.spacing(), pace, func(p langevin.Window) error {
		t.observe(newEvent(task, t.data.Name, p.To, steps, t.images(p)))
		return nil
	}, t.hooks...)
}
