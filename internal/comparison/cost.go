package comparison

import (
	"context"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
)

// Cost returns the number of steps of a specification's run, and the time of one step, measured
// with now over some steps, at least 4. The first two steps warm up and are not measured, nor is an
// anchor before them. observe, if not nil, gets the events of the steps.
func Cost(ctx context.Context, spec bayes.Spec, data *datasets.Dataset, some int, now func() time.Time, observe bayes.Observer,
	options ...bayes.Option,
) (steps int, step time.Duration, err error) {
	var first, last time.Time
	from, to := 0, 0
	steps, err = bayes.Try(ctx, spec, data, max(some, 4), append(options, bayes.WithObserver(func(e bayes.Event) {
		if observe != nil {
			observe(e)
		}
		if e.Task != "try" {
			return
		}
		if last, to = now(), e.Done; first.IsZero() {
			first, from = last, e.Done
		}
	}))...)
	return steps, last.Sub(first) / time.Duration(max(1, to-from)), err
}

// TeacherCost returns the number of images that the teacher of a distillation predicts during the
// run, and the time for one of them, measured with now.
func TeacherCost(ctx context.Context, spec bayes.Spec, data *datasets.Dataset, now func() time.Time, options ...bayes.Option,
) (images int, each time.Duration, err error) {
	const few, many = 100, 1100
	var took [2]time.Duration
	for i, n := range []int{few, many} {
		begin := now()
		if images, err = bayes.TryTeacher(ctx, spec, data, n, options...); err != nil {
			return 0, 0, err
		}
		took[i] = now().Sub(begin)
	}
	if data.Len() < many { // loading the samples is a part of the time, since few images cannot be timed
		return images, took[1] / time.Duration(min(many, data.Len())), nil
	}
	return images, max(0, took[1]-took[0]) / (many - few), nil
}
