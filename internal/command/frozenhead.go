package command

import (
	"context"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/tensor"
)

// fineTuned reports whether a run trained weights of a pretrained network, and not only a head.
func fineTuned(m bayes.Manifest) bool {
	return m.Model != nil && m.Teacher == nil && !m.Spec.Frozen()
}

// frozenHead fits the head of a fine-tuned run to the features that the network had before, for
// comparison: fine-tuning takes many times as long, and does not help with all images. The run is
// scored on the test images; it is nil if there is nothing to compare.
func frozenHead(ctx context.Context, run *bayes.Run, data *datasets.Splits, device tensor.Device, c *console) ([]scoredRun, error) {
	m := run.Manifest()
	if !fineTuned(m) || data.Test == nil || len(m.Parts) > 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "pollen-head-")
	if err != nil {
		return nil, errors.Wrap(err, "pollen: head for comparison")
	}
	defer os.RemoveAll(dir)
	method, err := bayes.ParseMethod("adam")
	if err != nil {
		return nil, err
	}
	spec := bayes.Spec{
		Network: filepath.Join(run.Dir(), rundir.ModelDir, m.Model.Files[0]), Cut: m.Spec.Cut, Head: m.Spec.Head, Input: m.Spec.Input,
		Subset: m.Spec.Subset, ClassWeights: m.Spec.ClassWeights, Seed: m.Spec.Seed, Method: method,
	}
	also := c.also
	c.also = nil // which observes the run
	defer func() { c.also = also }()
	const name = "head"
	show := c.observer(name)
	head, err := bayes.Fit(ctx, spec, &datasets.Splits{Train: data.Train}, filepath.Join(dir, name), bayes.WithDevice(device), keepFeatures(),
		bayes.WithObserver(func(e bayes.Event) {
			if e.Remark == "" { // remarks repeat what is known of the run
				show(e)
			}
		}))
	c.endProgress()
	if err != nil && ctx.Err() == nil {
		c.remark("no head for comparison: %v", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	heads := []scoredRun{{name: name, run: head}}
	return heads, assess(ctx, heads, data.Test, nil, c)
}
