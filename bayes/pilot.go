package bayes

import (
	"context"
	"fmt"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/tensor"
)

// pilotTask is the task of a pilot's events.
const pilotTask = "pilot"

// piloted returns the specification with the Epochs and the Augment that pilots find. Pilots make
// the warm starts of the first chains of the whole run, even if the specification is of a part with
// other chains, so that all parts find the same.
func (s Spec) piloted(ctx context.Context, recommended Spec, data *datasets.Dataset, e environment) (Spec, error) {
	own := e
	own.observe = func(event Event) { // remarks on the specification are the run's, which repeats them
		if event.Remark == "" {
			event.Task = pilotTask
			e.observe(event)
		}
	}
	whole, err := newTraining(recommended, data, "", own)
	if err != nil {
		return s, err
	}
	err = whole.on(func(device tensor.Device) error { // check the memory before minutes of a pilot
		_, err := whole.fitting(device)
		return err
	})
	if err != nil {
		return s, errors.WithMessage(err, "pollen: "+pilotTask)
	}
	if s.needsMirroring(recommended, data.Len()) {
		augment := *recommended.Augment
		var remark string
		if augment.Flip, remark, err = s.mirroringHelps(ctx, augment, data, own); err != nil {
			return s, err
		}
		s.Augment, recommended.Augment = &augment, &augment
		e.remark(remark)
	}
	if s.needsLength(recommended) {
		var remark string
		if s.Epochs, remark, err = recommended.pilotEpochs(ctx, data, own); err != nil {
			return s, err
		}
		e.remark(remark)
	}
	return s, nil
}

// pilotEpochs returns the length of the cycle in epochs: the number of steps after which the warm
// start reached its lowest loss on the images held out, but at least shortestCycle, and at most the
// epochs of s. A cycle fits the training images without looking at those held out: a network that
// memorizes its training images within a hundred steps of the warm start would do so again in a
// longer cycle, and be too certain of other images.
func (s Spec) pilotEpochs(ctx context.Context, data *datasets.Dataset, e environment) (epochs int, remark string, err error) {
	err = s.pilotWarmStart(ctx, 1, data, e, func(t *training) { t.warmUp.enough = t.plan.Steps }, func(t *training) error {
		best := t.warmUp.stepsOf(t.warmUp.chains[0].epoch)
		epochs = min(epochsOf(max(best, shortestCycle), t.spec.Batch, t.data.Len()), s.Epochs)
		remark = fmt.Sprintf("pilot: the held-out loss of one chain was lowest after %d steps, so the cycle has %d epochs", best, epochs)
		return nil
	})
	return epochs, remark, err
}

// mirroringHelps reports whether warm starts on images that are also mirrored predict the images
// held out better than warm starts on images that only a changes, by more than the standard error
// of the difference. It uses at most maxMirrored of the images.
func (s Spec) mirroringHelps(ctx context.Context, a Augment, data *datasets.Dataset, e environment) (helps bool, remark string, err error) {
	if s.Subset > 0 {
		if data, err = data.First(min(s.Subset, data.Len())); err != nil {
			return false, "", err
		}
	}
	if data, err = data.First(min(data.Len(), maxMirrored)); err != nil {
		return false, "", err
	}
	if _, _, err := s.divided(data); err != nil { // too few images of each class or group, unlike in all of the data
		return false, fmt.Sprintf("pilot: mirrored images are not tried: %v", err), nil
	}
	s.Subset, s.Augment = 0, &a
	a.Flip = false
	before, err := s.pilotLosses(ctx, data, e)
	if err != nil {
		return false, "", err
	}
	a.Flip = true
	after, err := s.pilotLosses(ctx, data, e)
	if err != nil {
		return false, "", err
	}
	remark = fmt.Sprintf("pilot: the held-out loss was %.3f, with mirrored images %.3f, so images are ", stat.Mean(before, nil), stat.Mean(after, nil))
	floats.Sub(after, before)
	mean, deviation := stat.MeanStdDev(after, nil)
	if mean < -stat.StdErr(deviation, float64(len(after))) {
		return true, remark + "mirrored at random (--augment)", nil
	}
	return false, remark + "not mirrored (--augment)", nil
}

// pilotLosses makes the recommended warm start and returns the negative log-likelihood of each
// image held out. The loss of a chain at a high rate is noisy, and a chain may stop early by
// chance. Predictions are therefore averaged over the epochs around a chain's best one, and the
// best of several chains gives the losses.
func (s Spec) pilotLosses(ctx context.Context, data *datasets.Dataset, e environment) (losses []float64, err error) {
	const around = 2
	s = s.recommended(true, data.Len(), min(data.Height, data.Width))
	predicted := make([]map[int][]float32, mirroringChains) // by epoch
	for i := range predicted {
		predicted[i] = map[int][]float32{}
	}
	err = s.pilotWarmStart(ctx, mirroringChains, data, e, func(t *training) {
		t.warmUp.predicted = func(chain int, p []float32) { predicted[chain][t.warmUp.epochs] = p }
	}, func(t *training) error {
		for i, c := range t.warmUp.chains {
			average := make([]float64, len(predicted[i][c.epoch]))
			for epoch := max(1, c.epoch-around); epoch <= c.epoch+around; epoch++ { // 0 is before the first step
				for k, p := range predicted[i][epoch] {
					average[k] += float64(p)
				}
			}
			if of := labelLosses(average, t.warmUp.heldOut.Labels); losses == nil || stat.Mean(of, nil) < stat.Mean(losses, nil) {
				losses = of
			}
		}
		return nil
	})
	return losses, err
}

// labelLosses returns the negative log-likelihood of each label, given sums of probabilities.
func labelLosses(sums []float64, labels []int32) []float64 {
	losses, classes := make([]float64, len(labels)), len(sums)/len(labels)
	for i, label := range labels {
		row := sums[i*classes:][:classes]
		floats.Scale(1/floats.Sum(row), row)
		losses[i], _ = measure.Scores(row, []int32{label}, nil)
	}
	return losses
}

// pilotWarmStart calls prepare, makes the warm start of the run's first chains, and calls use while
// its session is still loaded.
func (s Spec) pilotWarmStart(
	ctx context.Context, chains int, data *datasets.Dataset, e environment, prepare func(t *training), use func(t *training) error,
) error {
	s.Chains, s.FirstChain = chains, 0
	t, err := newTraining(s, data, "", e)
	if err != nil {
		return err
	}
	prepare(t)
	err = t.on(func(device tensor.Device) error {
		if err := t.warmUp.load(ctx, device); err != nil {
			return err
		}
		defer t.warmUp.close()
		if err := t.warmUp.run(ctx, t); err != nil {
			return err
		}
		return use(t)
	})
	if err != nil {
		return errors.WithMessage(t.diverged(err), pilotTask)
	}
	return nil
}
