package rundir

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A run was last written when any of its files was: a warm start writes checkpoints only.
func TestUpdated(t *testing.T) {
	dir, now := t.TempDir(), time.Now().Truncate(time.Second)
	for i, name := range []string{MetricsFile, CheckpointFile} {
		path, at := filepath.Join(dir, name), now.Add(time.Duration(i)*time.Minute)
		err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("{}"), 0o644))
		if err = cmp.Or(err, os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
		if s, err := ReadStatus(dir); err != nil || !s.Updated.Equal(at) {
			t.Errorf("with %s of %v: updated at %v, %v", name, at, s.Updated, err)
		}
	}
}
