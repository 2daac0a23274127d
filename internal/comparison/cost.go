package comparison

import (
	"context"
	"time"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
)

// Cost is how many steps the run of a specification has, and how long one takes, by making some of
// them, at least 4, by the time that now tells. The first two warm up: their time does not count,
// nor that of an anchor before them. The observer sees these steps; nil is none.
func Cost(ctx context.Context, spec pollen.Spec, data *datasets.Dataset, some int, now func() time.Time, observe pollen.Observer,
	options ...pollen.Option,
) (steps int, step time.Duration, err error) {
	var first, last time.Time
	from, to := 0, 0
	steps, err = pollen.Try(ctx, spec, data, max(some, 4), append(options, pollen.WithObserver(func(e pollen.Event) {
		if observe != nil {
			observe(e)
		}
		if e.Remark != "" {
			return
		}
		if last, to = now(), e.Done; first.IsZero() {
			first, from = last, e.Done
		}
	}))...)
	return steps, last.Sub(first) / time.Duration(max(1, to-from)), err
}
