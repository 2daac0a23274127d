package runtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
)

// A run that is resumed by another build records which build made which steps. A build is
// forgotten once all of its steps have been made again.
func TestContinuedByAnotherBuild(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 10, Epochs: 6, Samples: 4}
	whole := fit(t, spec, data, with(t, 1))
	if c := whole.Manifest().Continued; c != nil {
		t.Errorf("a run by one build: %+v", c)
	}
	dir := filepath.Join(t.TempDir(), "run")
	ctx, stop := stopAt(20)
	_, err := bayes.Fit(ctx, spec, data, dir, with(t, 1), stop)
	var stopped *bayes.UnfinishedError
	if !errors.As(err, &stopped) {
		t.Fatalf("the run did not stop: %v", err)
	}
	path := filepath.Join(dir, rundir.ManifestFile)
	must(t, os.WriteFile(path, []byte(resealed(t, strings.Replace(readFile(t, path), `"revision": "`, `"revision": "another, not `, 1))), 0o644))
	on := func(last int) []bayes.Continued {
		t.Helper()
		ctx, stop := stopAt(last)
		if _, err := bayes.Resume(ctx, dir, data, with(t, 1), stop); last < 60 && err == nil {
			t.Fatal("the run did not stop")
		}
		m, err := bayes.ReadManifest(dir)
		must(t, err)
		return m.Continued
	}
	here := bayes.Continued{From: stopped.Made, Device: whole.Manifest().Device, Build: whole.Manifest().Build}
	for _, last := range []int{35, 45} {
		if diff := cmp.Diff([]bayes.Continued{here}, on(last)); diff != "" {
			t.Errorf("stopped again after %d: %s", last, diff)
		}
	}
	v, err := bayes.Verify(dir)
	must(t, err)
	note := fmt.Sprintf("note: the steps after %d were made by the build %s", here.From, here.Revision)
	if text := v.String(); len(v.Damaged) > 0 || !strings.Contains(text, note) {
		t.Error(text)
	}

	if got := on(60); len(got) != 1 {
		t.Errorf("what was written: %+v", got)
	}
}
