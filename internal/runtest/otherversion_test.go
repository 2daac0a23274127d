package runtest

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
)

// TestResumeOfAnotherVersion: a checkpoint whose chains have states of another size was written by
// another version. The error says so and is no damage.
func TestResumeOfAnotherVersion(t *testing.T) {
	data, dir := trainOn(squares(t, 60, 3, 1)), filepath.Join(t.TempDir(), "run")
	ctx, observer := stopAt(10)
	spec := rising(t, "ensemble", 1e-3)
	_, err := bayes.Fit(ctx, spec, data, dir, with(t, 1), observer)
	wantError(t, "a stop", err, "stopped after")

	var checkpoint rundir.Checkpoint
	w := rundir.NewWriter(dir, rundir.Options{
		Chains: 4, Retention: rundir.Retention{Plan: langevin.Plan{Steps: 450, Thinning: 450}}, Remark: func(text string) { t.Log(text) },
	})
	must(t, w.Recover(func(c rundir.Checkpoint) error {
		checkpoint = c
		return nil
	}))
	for i, state := range checkpoint.Chains {
		checkpoint.Chains[i] = state[:len(state)-64]
	}
	must(t, w.Checkpoint(nil, checkpoint))
	must(t, w.Wait())
	must(t, w.Close())

	_, err = bayes.Resume(t.Context(), dir, data, with(t, 1))
	wantInvalid(t, "resume", err, "another version of Pollen began the run (build ")
	wantError(t, "resume", err, "which this one cannot continue", "samples can still be used")
	if errors.As(err, new(*bayes.DamagedError)) {
		t.Errorf("%v is a DamagedError", err)
	}
}
