package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/tensor"
)

// cost has the time and disk space that a cell takes.
type cost struct {
	time  time.Duration
	bytes int64 // on disk until the cell is finished
}

// announce prints what the missing cells will cost, measured from a few steps of each kind.
func (t *study) announce(ctx context.Context, missing []cell, all int) error {
	if len(missing) == 0 {
		fmt.Fprintf(t.progress, "all %d cells are in %s\n", all, t.dir)
		return nil
	}
	device := tensor.NewHost(1)
	defer device.Close()
	costs := map[cell]cost{}
	var total time.Duration
	var largest int64
	for _, c := range missing {
		kind := c
		kind.Chain = 0
		each, ok := costs[kind]
		if !ok {
			var err error
			if each, err = t.measure(ctx, kind, device); err != nil {
				return err
			}
			costs[kind] = each
		}
		total += each.time
		largest = max(largest, each.bytes)
	}
	together := min(t.jobs, len(missing))
	fmt.Fprintf(t.progress, "%d of %d cells are missing: about %s with %d at a time, and up to %.1f MB on disk\n", len(missing), all,
		(total / time.Duration(together)).Round(time.Second), t.jobs, float64(largest)*float64(together)/1e6)
	return nil
}

// measure returns the cost of a cell, from the time of some steps and of one prediction.
func (t *study) measure(ctx context.Context, c cell, device tensor.Device) (cost, error) {
	steps, step, err := comparison.Cost(ctx, c.spec(), t.train, 24, t.now, nil, bayes.WithDevice(device))
	if err != nil {
		return cost{}, err
	}
	prediction, bytes, err := t.measurePrediction(ctx, c, device)
	if err != nil {
		return cost{}, err
	}
	n := c.samples()
	all := cost{step*time.Duration(steps) + prediction*time.Duration(n), bytes * int64(n)}
	fmt.Fprintf(t.progress, "%-18s %d steps of %.2f ms, predictions: %d of %.0f ms, in all %s\n", strings.TrimSuffix(c.String(), "-chain0"), steps,
		milliseconds(step), n, milliseconds(prediction), all.time.Round(time.Second))
	return all, nil
}

// measurePrediction returns how long a prediction with one sample takes, and the size of the
// sample's file. The sample comes from a run of one step.
func (t *study) measurePrediction(ctx context.Context, c cell, device tensor.Device) (time.Duration, int64, error) {
	dir, err := os.MkdirTemp("", "perceptrons")
	if err != nil {
		return 0, 0, errors.Wrap(err, "perceptrons")
	}
	defer os.RemoveAll(dir)
	spec := c.spec()
	spec.Subset, spec.Epochs, spec.BurnInSteps, spec.Thinning, spec.BurnIn, spec.Samples = batch, 1, 0, 0, new(0), 1
	run, err := bayes.Fit(ctx, spec, &datasets.Splits{Train: t.train}, filepath.Join(dir, "run"), bayes.WithDevice(device))
	if err != nil {
		return 0, 0, err
	}
	start := t.now()
	if _, err := run.Predictions(ctx, t.test, nil); err != nil {
		return 0, 0, err
	}
	took := t.now().Sub(start)
	files, err := run.Samples()
	if err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(files[0])
	if err != nil {
		return 0, 0, errors.Wrap(err, "perceptrons")
	}
	return took, info.Size(), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
