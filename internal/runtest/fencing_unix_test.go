//go:build unix

package runtest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// A process that is suspended before any of its calls to the disk, while another one finishes the
// run, changes nothing when it wakes up.
func TestReplacedBeforeEachCall(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 100, 4, 1), Validation: squares(t, 40, 4, 2)}
	ctx := context.Background()
	whole, err := bayes.Fit(ctx, keeping(t), data, filepath.Join(t.TempDir(), "whole"))
	must(t, err)
	want := contents(t, whole.Dir())
	step := 1
	if !testenv.All(t) {
		step = 7 // which the calls of an epoch are not a multiple of
	}
	ended := false
	for at := 0; !ended; at += step {
		dir := filepath.Join(t.TempDir(), "run")
		taken := func() map[string][]byte {
			must(t, os.Remove(filepath.Join(dir, lock.File)))
			if _, err := bayes.Resume(ctx, dir, data); err != nil {
				t.Fatalf("call %d: the second process: %v", at, err)
			}
			return everything(t, dir)
		}
		var (
			left   map[string][]byte
			call   string
			calls  int
			mu     sync.Mutex
			asleep bool
			done   bool // the outcome was written
		)
		end := file.Inject(func(kind, path string, _ int) (int, error) {
			mu.Lock()
			_, none := os.Stat(filepath.Join(dir, rundir.ManifestFile))
			now := none == nil && left == nil && !asleep
			if left == nil {
				done = done || kind == file.CallSyncDir && filepath.Base(path) == rundir.OutcomeFile
			}
			if now {
				now, calls = calls == at, calls+1
			}
			asleep = asleep || now
			mu.Unlock()
			if now {
				call = kind + " " + filepath.Base(path)
				left = taken()
			}
			return 0, nil
		})
		_, err := bayes.Fit(ctx, keeping(t), data, dir)
		end()
		if left == nil {
			must(t, err)
			ended = true
			continue
		}
		var locked *bayes.LockedError
		if !errors.As(err, &locked) && !(done && err == nil) {
			t.Errorf("before %s (call %d): error %v, want a LockedError", call, at, err)
		}
		same(t, call, left, everything(t, dir))
		same(t, call, want, contents(t, dir))
		if v, err := bayes.Verify(dir); err != nil || len(v.Damaged) > 0 {
			t.Errorf("before %s (call %d): %v (%v)", call, at, v, err)
		}
	}
}

// everything is all files of a directory.
func everything(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			all[path], err = os.ReadFile(path)
		}
		return err
	}))
	return all
}
