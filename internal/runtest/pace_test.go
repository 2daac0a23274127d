package runtest

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
)

// slowly makes each part of a window seem to take a minute, so that every step is a part with an
// event.
func slowly() bayes.Option {
	var clock time.Time
	return bayes.WithClock(func() time.Time {
		clock = clock.Add(time.Minute)
		return clock
	})
}

// TestStopWithinWindow: a run whose steps are slow reports each of them and stops between two of
// them. Resumed, it has the files of a run that was not stopped and whose steps are fast.
func TestStopWithinWindow(t *testing.T) {
	ctx := context.Background()
	data := trainOn(squares(t, 60, 3, 1))
	spec := bayes.Spec{Network: "mlp-5", Method: langevin.SGLD{}, Batch: 3, Epochs: 12, BurnIn: new(2), Samples: 2, Chains: 2, Seed: 7}
	warm := spec
	warm.WarmStart, warm.WarmEpochs, warm.WarmPatience = adam(), 10, 10
	anchored := spec
	anchored.Anchor = 3
	for _, test := range []struct {
		name, task string
		spec       bayes.Spec
		at, kept   int // the step of the event that stops the run, and the steps that it then has
	}{
		{"sampling", "fit", spec, 157, 140},
		{"warm start", "warm start", warm, 37, 0},
		{"anchor", "fit", anchored, 67, 60},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			events, images := 0, 0
			whole, err := bayes.Fit(ctx, test.spec, data, filepath.Join(dir, "whole"), with(t, 1), bayes.WithObserver(func(e bayes.Event) {
				if e.Task == "fit" {
					images += e.Images
				}
			}))
			must(t, err)
			stopping, stop := context.WithCancel(ctx)
			_, err = bayes.Fit(stopping, test.spec, data, filepath.Join(dir, "stopped"), with(t, 2), slowly(), bayes.WithObserver(func(e bayes.Event) {
				if e.Task != test.task {
					return
				}
				if events++; e.Done == test.at {
					if !math.IsNaN(e.Loss) || e.Images != 2*3 {
						t.Errorf("event %+v, want one of a step without scores", e)
					}
					stop()
				}
			}))
			var unfinished *bayes.UnfinishedError
			if !errors.As(err, &unfinished) || unfinished.Made != test.kept || !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v, want a stop after %d steps", err, test.kept)
			}
			if events != test.at {
				t.Errorf("%d events, want one for each of %d steps", events, test.at)
			}
			resumed, err := bayes.Resume(ctx, filepath.Join(dir, "stopped"), data, with(t, 2), slowly(), bayes.WithObserver(func(e bayes.Event) {
				if e.Task == "fit" {
					images -= e.Images
				}
			}))
			must(t, err)
			same(t, "stopped within a window", contents(t, whole.Dir()), contents(t, resumed.Dir()))
			if want := test.kept * 2 * 3; test.name != "anchor" && images != want {
				t.Errorf("events of the whole run count %d images more than those of the resumed one, want %d", images, want)
			}
		})
	}
}
