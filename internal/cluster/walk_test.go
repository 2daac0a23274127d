package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
)

// The error of a directory without runs names what is there instead of a manifest.
func TestWalkNamesTheCause(t *testing.T) {
	dir := t.TempDir()
	visit := func(string, *bayes.Run, bayes.Progress, error) error { return nil }
	var none *NoRunError
	if err := Walk([]string{dir}, visit); !errors.As(err, &none) || none.Cause != nil {
		t.Errorf("error %v, want one without a cause", err)
	}
	missing := filepath.Join(dir, "missing")
	if err := Walk([]string{missing}, visit); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "walk") {
		t.Errorf("error %v, want one that names only the missing directory", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "run", "manifest.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	const want = "manifest.json: it must be a regular file, got a directory"
	if err := Walk([]string{dir}, visit); !errors.As(err, &none) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want one that ends in %q", err, want)
	}
}

// A directory may be given by a symbolic link, as to a disk for runs.
func TestWalkFollowsALink(t *testing.T) {
	dir := t.TempDir()
	run, link := filepath.Join(dir, "disk", "run"), filepath.Join(dir, "runs")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, "manifest.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "disk"), link); err != nil {
		t.Skip(err)
	}
	var found []string
	visit := func(dir string, _ *bayes.Run, _ bayes.Progress, err error) error {
		found = append(found, dir)
		return nil
	}
	if err := Walk([]string{link, filepath.Join(link, "run")}, visit); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(link, "run"); !slices.Equal(found, []string{want, want}) {
		t.Errorf("found %q, want %q twice", found, want)
	}
}
