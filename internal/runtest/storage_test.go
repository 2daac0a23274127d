package runtest

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// diskCalls returns the calls that change a disk, as "call path", while do runs.
func diskCalls(do func()) (calls []string) {
	var mu sync.Mutex
	end := file.Inject(func(call, path string, _ int) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, call+" "+path)
		return 0, nil
	})
	defer end()
	do()
	return calls
}

// A run that reports success outlives a power failure: the directories above it and all lines of
// its index are on the disk.
func TestStorageOfFinishedRun(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	data.Validation = squares(t, 40, 4, 2)
	parent := t.TempDir()
	dir := filepath.Join(parent, "a", "b", "run")
	listed := filepath.Join(dir, index.File)
	var run *bayes.Run
	calls := diskCalls(func() {
		var err error
		run, err = bayes.Fit(context.Background(), quick(), data, dir)
		must(t, err)
	})
	syncedLast := func(what string, calls []string) {
		t.Helper()
		calls = reversed(calls)
		if at := slices.Index(calls, file.CallSync+" "+listed); at < 0 || slices.Contains(calls[:at], file.CallWrite+" "+listed) {
			t.Errorf("%s: lines of the index are not on the disk", what)
		}
	}
	at := slices.Index(calls, file.CallRename+" "+filepath.Join(dir, rundir.OutcomeFile))
	if at < 0 {
		t.Fatalf("there is no %s in %q", rundir.OutcomeFile, calls)
	}
	syncedLast("before the outcome", calls[:at])
	syncedLast("at the end", calls)
	for place := dir; runtime.GOOS != "windows" && place != parent; place = filepath.Dir(place) {
		if !slices.Contains(calls, file.CallSyncDir+" "+place) {
			t.Errorf("the name %s is not put on the disk", place)
		}
	}

	calls = diskCalls(func() { must(t, run.Calibrate(context.Background(), data.Validation)) })
	syncedLast("calibration", calls)
}

func reversed(calls []string) []string {
	calls = slices.Clone(calls)
	slices.Reverse(calls)
	return calls
}
