//go:build unix

package runtest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/internal/rundir"
)

func fifo(path string) error { return syscall.Mkfifo(path, 0o644) }

func zeros(path string) error { return os.Symlink("/dev/zero", path) }

// A FIFO blocks its reader until another process writes, and /dev/zero has no end.
func TestHostileDevices(t *testing.T) {
	good, data := foreignRun(t)
	for what, put := range map[string]func(path string) error{"named pipe": fifo, "device": zeros} {
		want := "must be a regular file, got a " + what
		replaced := "" // a link is replaced when a run is resumed
		if what == "named pipe" {
			replaced = "must be a regular file"
		}
		for _, h := range []hostile{
			all("manifest", instead(rundir.ManifestFile, put), want),
			{name: "sample", make: instead("first", put), predict: want, assess: want, verify: want, resumes: want},
			{name: "calibration", make: instead(rundir.CalibrationFile, put), predict: want, assess: want, verify: want, resumes: replaced},
			{name: "index", make: instead(index.File, put), predict: want, assess: want, verify: want, status: want, resumes: replaced},
			{name: "metrics", make: instead(rundir.MetricsFile, put), verify: want, status: want, resumes: want},
			{name: "outcome", make: instead(rundir.OutcomeFile, put), verify: want, status: want},
			{name: "record", make: instead(lock.Record, put), resumes: replaced},
			{name: "lock", make: instead(lock.File, put), resumes: "must be a regular file"},
			{name: "checkpoint", make: func(t testing.TB, dir string) {
				must(t, os.Remove(filepath.Join(dir, rundir.OlderCheckpoint)))
				instead(rundir.CheckpointFile, put)(t, dir)
			}, verify: want, resumes: want},
		} {
			t.Run(what+" as "+h.name, func(t *testing.T) { h.test(t, good.Dir(), data) })
		}
	}
}
