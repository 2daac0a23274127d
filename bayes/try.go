package bayes

import (
	"context"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/tensor"
)

// EstimateMemory estimates the memory of the run that Fit would make. Nothing is allocated for it
// except the compiled programs. For the method auto it estimates the method that auto would choose,
// without the pilot; a few steps measure the speed. Like Fit, it returns an error for an invalid
// specification or data.
func EstimateMemory(spec Spec, data *datasets.Splits, options ...Option) (*Memory, error) {
	if data == nil || data.Train == nil {
		return nil, invalid("estimate: no data to train on")
	}
	e := environmentOf(options)
	spec, err := spec.recommendedFor(data.Train, e).assumed(data.Train, e)
	if err != nil {
		return nil, err
	}
	t, err := newTraining(spec, data.Train, "", e)
	if err != nil {
		return nil, err
	}
	if err := t.holdOut(data); err != nil {
		return nil, err
	}
	var m *Memory
	err = t.on(func(device tensor.Device) error {
		m, err = t.estimate(device)
		return err
	})
	return m, err
}

// Try makes some steps of the run that spec describes and keeps nothing, to estimate the cost of
// the run. It returns the number of steps that the run would have, including the maximum number of
// a warm start. The observer is called after every two steps, so that a caller with a clock can
// time them.
func Try(ctx context.Context, spec Spec, data *datasets.Dataset, steps int, options ...Option) (total int, err error) {
	if err := checkContext(ctx, "try"); err != nil {
		return 0, err
	}
	const window = 2
	if data == nil {
		return 0, invalid("try: no data to train on")
	}
	if steps < 1 {
		return 0, invalid("try: steps must be at least 1, got %d", steps)
	}
	e := environmentOf(options)
	if spec, err = spec.recommendedFor(data, e).decided(ctx, data, e); err != nil {
		return 0, err
	}
	t, err := newTraining(spec, data, "", e)
	if err != nil {
		return 0, err
	}
	t.remarkSteps()
	if t.warmUp != nil {
		total = t.warmUp.training.plan.Steps
	}
	err = t.loaded(ctx, func(tensor.Device) error {
		// 0 bytes: always report the space, which is a part of the estimate.
		if err := t.remarkRoom(".", 0); err != nil {
			return err
		}
		return t.try(ctx, steps, window)
	})
	return total + t.plan.Steps, err
}

// TryTeacher loads the teacher of a distillation and lets it predict the given number of images, at
// most all. It returns the number of images that the teacher would predict during the distillation.
// Programs time two calls with different numbers of images to estimate how long that would take:
// the difference does not include loading the teacher. It is an InvalidError if spec is not a
// distillation.
func TryTeacher(ctx context.Context, spec Spec, data *datasets.Dataset, images int, options ...Option) (total int, err error) {
	if err := checkContext(ctx, "try"); err != nil {
		return 0, err
	}
	switch _, ok := spec.Method.(Distillation); {
	case !ok:
		return 0, invalid("try: the method must be distil, to have a teacher")
	case data == nil:
		return 0, invalid("try: no data to train on")
	case images < 1:
		return 0, invalid("try: images must be at least 1, got %d", images)
	}
	e := environmentOf(options)
	t, err := newTraining(spec.recommendedFor(data, e), data, "", e)
	if err != nil {
		return 0, err
	}
	if err := t.teaching.open(nil); err != nil {
		return 0, err
	}
	some, err := t.data.First(min(images, t.data.Len()))
	if err != nil {
		return 0, err
	}
	_, err = t.teaching.teacher.Predictions(ctx, some, nil)
	epochs := (t.plan.Steps*t.spec.Batch + t.data.Len() - 1) / t.data.Len()
	copies := min(epochs, t.spec.Method.(Distillation).Copies)
	return copies * t.data.Len(), err
}
