package rundir

import (
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
)

// A run that is recovered lists all files that it listed before.
func TestRecoverKeepsLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	writer := func() *Writer {
		return NewWriter(dir, Options{Chains: 1, Retention: Retention{Plan: langevin.Plan{Steps: 1, Thinning: 1}}, Remark: func(text string) { t.Error(text) }})
	}
	w := writer()
	err := w.Begin(func() (Checkpoint, any, error) {
		return Checkpoint{Chains: [][]byte{{0}}}, map[string]int{"format": Format}, nil
	})
	for _, name := range addedFiles {
		if err == nil && name == SplitsFile {
			err = w.WriteSplits([]byte("a"))
		} else if err == nil {
			err = w.Write(name, map[string]int{"a": 1}, "")
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	before, err := ReadIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	w = writer()
	if err = w.Recover(func(Checkpoint) error { return nil }); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	after, err := ReadIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range before.Names {
		if after.Lines[name] != before.Lines[name] {
			t.Errorf("%s is listed as %+v, want %+v", name, after.Lines[name], before.Lines[name])
		}
	}
	if len(before.Names) != 1+len(addedFiles) {
		t.Errorf("the index lists %v, want the manifest and %v", before.Names, addedFiles)
	}
}
