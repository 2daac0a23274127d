package comparison

import (
	"context"
	"time"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
)

// Cost returns the number of steps of a specification's run, and the time of one step, measured
// with now over some steps, at least 4. The first two steps warm up and are not measured, nor is an
// anchor before them. observe, if not nil, gets the events of the steps.
func Cost(ctx context.Context, spec pollen.Spec, data *datasets.Dataset, some int, now func() time.Time, observe pollen.Observer,
	options ...pollen.Option,
) (steps int, step time.Duration, err error) {
	var first, last time.Time
	from, to := 0, 0
	steps, err = pollen.Try(ctx, spec, data, max(some, 4), append(options, pollen.WithObserver(func(e pollen.Event) {
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
