package runtest

import (
	"context"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/layers"
)

// A custom network goes into the manifest, and comes out of it.
func TestLayersOfOnesOwn(t *testing.T) {
	data := squares(t, 100, 4, 1)
	own := layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 5}, layers.SiLU{}, layers.Linear{Outputs: 4}}
	run := fit(t, bayes.Spec{Layers: own, Batch: 20, Epochs: 4, Samples: 3}, trainOn(data))
	want, err := run.Assess(context.Background(), data, nil)
	must(t, err)
	opened, err := bayes.Open(run.Dir())
	must(t, err)
	got, err := opened.Assess(context.Background(), data, nil)
	if err != nil || got.String() != want.String() {
		t.Errorf("opened: %v (%v), want %v", got, err, want)
	}
	if _, err := bayes.Resume(context.Background(), run.Dir(), trainOn(data)); err != nil {
		t.Error(err)
	}
}
