package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// gather makes a gathered run without parts.
func gather(dir string) error {
	return Gather(dir, func(string) {}, func() (any, error) { return map[string]int{"format": Format}, nil })
}

// A file that another process adds is missing or there, never damaged.
func TestReadFileWhileItIsAdded(t *testing.T) {
	place := t.TempDir()
	for range 60 {
		dir, err := os.MkdirTemp(place, "run")
		if err == nil {
			err = gather(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		added := make(chan error, 1)
		go func() {
			added <- AddFile(dir, CalibrationFile, map[string]int{"a": 1}, func(text string) { t.Error(text) })
		}()
		for {
			_, err = ReadFile[map[string]any](dir, CalibrationFile)
			if !errors.Is(err, os.ErrNotExist) {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := <-added; err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(place, "other")
	err := gather(dir)
	if err == nil {
		err = AddFile(dir, CalibrationFile, map[string]int{"a": 1}, func(string) {})
	}
	if err == nil {
		err = os.Remove(filepath.Join(dir, CalibrationFile))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile[map[string]any](dir, CalibrationFile); !errors.As(err, new(*DamagedError)) {
		t.Errorf("a file that the index lists is gone: %v, want a DamagedError", err)
	}
}
