package bayes

import (
	"context"
	"fmt"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/tensor"
)

// pilotTask is the task of a pilot's events.
const pilotTask = "pilot"

// needsPilot reports whether a pilot must find the length of the recommended cycle: if there is one
// cycle, after a warm start, and Epochs is not given. On 2500 images and more, recommendedEpochs
// are few enough not to memorize them.
func (s Spec) needsPilot(recommended Spec) bool {
	return s.Method == nil && s.Epochs == 0 && recommended.WarmStart != nil && recommended.Cycles == 1 && recommended.Epochs > recommendedEpochs
}

// pilotEpochs returns the length of the cycle in epochs: the number of steps after which the warm
// start reached its lowest loss on the images held out, but at least shortestCycle, and at most the
// epochs of s. A cycle fits the training images without looking at those held out: a network that
// memorizes its training images within a hundred steps of the warm start would do so again in a
// longer cycle, and be too certain of other images.
//
// The pilot makes the warm start of the whole run's first chain, even if s is a part that has other
// chains, so that all parts find the same number.
func (s Spec) pilotEpochs(ctx context.Context, data *datasets.Dataset, e environment) (epochs int, err error) {
	own := e
	own.observe = func(event Event) { // remarks on the specification are the run's, which repeats them
		if event.Remark == "" {
			event.Task = pilotTask
			e.observe(event)
		}
	}
	whole, err := newTraining(s, data, "", own)
	if err != nil {
		return 0, err
	}
	s.Chains, s.FirstChain = 1, 0
	t, err := newTraining(s, data, "", own)
	if err != nil {
		return 0, err
	}
	w := t.warmUp
	w.enough = t.plan.Steps
	err = t.on(func(device tensor.Device) error {
		if _, err := whole.fitting(device); err != nil { // before minutes of a pilot
			return err
		}
		if err := w.load(ctx, device); err != nil {
			return err
		}
		defer w.close()
		return w.run(ctx, t)
	})
	if err != nil {
		return 0, errors.WithMessage(t.diverged(err), pilotTask)
	}
	best := w.stepsOf(w.chains[0].epoch)
	epochs = min(epochsOf(max(best, shortestCycle), t.spec.Batch, t.data.Len()), s.Epochs)
	e.remark(fmt.Sprintf("pilot: the held-out loss of one chain was lowest after %d steps, so the cycle has %d epochs", best, epochs))
	return epochs, nil
}
