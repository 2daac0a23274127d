package runtest

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin/llc"
)

// An estimate of the learning coefficient continues after the step sizes that an earlier call kept,
// and has the same rows as one that was not interrupted. With other options, none is used, and a
// remark has the difference.
func TestLearningCoefficientContinues(t *testing.T) {
	data := squares(t, 60, 3, 1)
	run := fit(t, bayes.Spec{Network: "mlp-4", Method: methodOf(t, "sgld"), Epochs: 4}, trainOn(data))
	o := llc.Options{Localization: 1, Steps: 200, Chains: 2, Seed: 1, Reference: llc.MinMeasured, StepSizes: []float64{1e-4, 5e-5}}
	// estimate stops after the given number of steps, and returns how many it made.
	estimate := func(dir string, stop int, o llc.Options) (e *llc.Estimation, steps int, remarks string) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		run, err := bayes.Open(dir, with(t, 1), bayes.WithObserver(func(e bayes.Event) {
			remarks += e.Remark
			if steps += e.Images / data.Len(); e.Task == "llc" && e.Done >= stop {
				cancel()
			}
		}))
		must(t, err)
		e, err = run.LearningCoefficient(ctx, data, "", o)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("stopping after %d steps: %v", stop, err)
		}
		return e, steps, remarks
	}
	whole := filepath.Join(t.TempDir(), "whole")
	must(t, os.CopyFS(whole, os.DirFS(run.Dir())))
	want, all, _ := estimate(whole, 1e9, o)
	if e, _, _ := estimate(run.Dir(), 600, o); e == nil || len(e.Rows) != 1 {
		t.Fatalf("interrupted: %v, want a row", e)
	}
	got, steps, remarks := estimate(run.Dir(), 1e9, o)
	if !reflect.DeepEqual(got.Rows, want.Rows) || got.Slack != want.Slack || steps != all-600 ||
		!strings.Contains(remarks, "continuing after 1 step size of an earlier call") {
		t.Errorf("continued by %d steps: %+v, %s, want %d steps and %+v", steps, got, remarks, all-600, want)
	}
	if got, steps, _ := estimate(run.Dir(), 1e9, o); !reflect.DeepEqual(got.Rows, want.Rows) || got.Reference == nil || steps != 0 {
		t.Errorf("again, by %d steps: %+v, want none", steps, got)
	}
	o.Steps, o.Seed, o.Reference = 120, 2, 0
	_, _, remarks = estimate(run.Dir(), 1e9, o)
	if want := "burn-in-steps is 100 in it, not 60; seed is 1 in it, not 2; steps is 200 in it, not 120"; !strings.Contains(remarks, want) {
		t.Errorf("with other options: %s, want %s", remarks, want)
	}
	files, err := filepath.Glob(filepath.Join(run.Dir(), rundir.LLCDir, "*"))
	if must(t, err); len(files) != 2 {
		t.Errorf("%d files, want one for each set of options: %v", len(files), files)
	}
	descending := o
	descending.Descent = 100
	want, all, _ = estimate(whole, 1e9, descending)
	if e, _, _ := estimate(run.Dir(), 100, descending); e != nil {
		t.Errorf("interrupted after the descent: %v", e)
	}
	got, steps, remarks = estimate(run.Dir(), 1e9, descending)
	if !reflect.DeepEqual(got, want) || steps != all-100 || !strings.Contains(remarks, "continuing after the descent of an earlier call") {
		t.Errorf("continued by %d steps: %+v, %s, want %d steps and %+v", steps, got, remarks, all-100, want)
	}
	ends, err := filepath.Glob(filepath.Join(run.Dir(), rundir.LLCDir, "*", "*.safetensors"))
	if must(t, err); len(ends) != 1 {
		t.Fatalf("%q, want the end of one descent", ends)
	}
	must(t, os.Remove(ends[0]))
	if e, _, remarks := estimate(run.Dir(), 1e9, descending); !reflect.DeepEqual(e, want) || !strings.Contains(remarks, "all step sizes are estimated again") {
		t.Errorf("without the end of the descent: %s", remarks)
	}
	for _, file := range files {
		must(t, os.WriteFile(file, []byte("{}"), 0o644))
	}
	if e, _, remarks := estimate(run.Dir(), 1e9, o); e == nil || !strings.Contains(remarks, "all step sizes are estimated again") {
		t.Errorf("damaged: %s", remarks)
	}
}
