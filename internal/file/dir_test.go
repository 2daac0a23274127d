package file

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/pkg/errors"
)

// Each directory that MakeDir creates is put on the disk, so that a power failure loses none of
// those above a run.
func TestMakeDir(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "a", "b", "c")
	var synced []string
	end := Inject(func(call, path string, _ int) (int, error) {
		if call == CallSyncDir {
			synced = append(synced, path)
		}
		return 0, nil
	})
	defer end()
	for range 2 {
		if err := MakeDir(place); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(dir, "a"), filepath.Join(dir, "a", "b"), place}
	if runtime.GOOS != "windows" && !slices.Equal(synced, want) {
		t.Errorf("MakeDir synchronised %q, want %q", synced, want)
	}
	put(t, filepath.Join(dir, "file"), "")
	for _, place := range []string{filepath.Join(dir, "file"), filepath.Join(dir, "file", "d")} {
		if err := MakeDir(place); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("MakeDir(%s) = %v, want ENOTDIR", place, err)
		}
	}
	t.Chdir(dir)
	if err := MakeDir("relative/d"); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "relative", "d")); err != nil || !info.IsDir() {
		t.Errorf("relative/d: %v, want a directory", err)
	}
}

func TestMakeDirNotSynced(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("directories are not synchronised")
	}
	end := Inject(func(call, _ string, _ int) (int, error) {
		if call == CallSyncDir {
			return 0, syscall.EIO
		}
		return 0, nil
	})
	defer end()
	wantError(t, MakeDir(filepath.Join(t.TempDir(), "a")), "may be lost when the power fails")
}
