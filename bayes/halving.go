package bayes

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// sample makes the steps after the warm start. A chain that diverges where a cycle explores goes
// back to the weights that it began with, and continues at half its learning rate. With a method
// that does not sample, a chain that diverges is trained again, and then the window in which it
// exploded is observed.
func (t *training) sample(ctx context.Context) error {
	hooks := t.hooks
	if t.halves && t.warmUp != nil {
		hooks = append(slices.Clip(hooks), afterExploring{t})
	}
	pace := t.pace(ctx, fitTask, t.data.Name, t.plan.Steps)
	for {
		err := t.plan.RunPaced(ctx, t.session, t.spacing(), pace, t.observeWindow, hooks...)
		i, step, ok := divergedChain(err, t.spec.FirstChain)
		switch {
		case ok && t.retrains():
			exploded := (*explodedError)(nil)
			atEnd := errors.As(err, &exploded)
			if err = t.retrain(ctx, err); err == nil && atEnd {
				err = t.observeWindow(exploded.window)
			}
		case ok && t.halves && t.warmUp != nil && t.temperatures[step] == 0:
			err = t.halve(i, fmt.Sprintf("diverged in step %d", step), err)
		default:
			return err
		}
		if err != nil {
			return err
		}
	}
}

// afterExploring is the hook between exploring and sampling. It finds chains whose weights exploded
// although all numbers are still finite, by their losses in the last exploring steps.
type afterExploring struct{ t *training }

// Due reports whether the last step explored and the next one samples.
func (h afterExploring) Due(steps int) bool {
	at := h.t.temperatures
	return steps > 0 && steps < len(at) && at[steps-1] == 0 && at[steps] > 0
}

// explodedLoss is the ratio to the loss of guessing above which a loss shows that a chain exploded.
const explodedLoss = 100

// mustReset reports whether a chain exploded while it explored, or forgot more than half of what
// it had learned: whether its loss on training images is closer to guessing, the loss of guessing,
// than to before, its loss after the warm start on the images held out of it. A network whose ReLUs
// die has a loss close to guessing, on either side.
func mustReset(loss, before, guessing float64) bool {
	return before < guessing && loss > (before+guessing)/2 || loss > explodedLoss*guessing
}

// OnStep resets the chains for which mustReset is true to the weights that they began with.
func (h afterExploring) OnStep(_ context.Context, s *graph.Session) error {
	const last = 10
	t, steps, guessing := h.t, int(s.Steps()), h.t.warmUp.guessing()
	for i, c := range t.warmUp.chains {
		loss, n := 0.0, 0.0
		for step := max(0, steps-last); step < steps && t.temperatures[step] == 0; step++ {
			loss += s.Metric(i, lossMetric, uint64(step))
			n++
		}
		if loss /= n; !mustReset(loss, c.loss, guessing) {
			continue
		}
		happened := fmt.Sprintf("has a loss of %.3g after exploring", loss)
		if c.halvings == maxHalvings {
			t.remark(fmt.Sprintf("chain %d %s, though its learning rate was halved %d times", t.spec.FirstChain+i, happened, c.halvings))
			continue
		}
		if err := t.halve(i, happened, nil); err != nil {
			return err
		}
	}
	return nil
}

// halve resets a chain to the weights that it began with, halves its learning rate, and remarks on
// what happened to it. It returns err if there are no such weights or too many halvings.
func (t *training) halve(i int, happened string, err error) error {
	c := &t.warmUp.chains[i]
	if c.best == nil || c.halvings == maxHalvings {
		return err
	}
	c.halvings++
	t.remark(fmt.Sprintf("chain %d %s, and continues from its weights after the warm start at 1/%d of the learning rate",
		t.spec.FirstChain+i, happened, 1<<c.halvings))
	return putBack(t.session, i, c.best, c.halvings)
}
