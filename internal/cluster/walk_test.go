package cluster

import (
	"os"
	"path/filepath"
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
	if err := os.MkdirAll(filepath.Join(dir, "run", "manifest.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	const want = "manifest.json: it must be a regular file, got a directory"
	if err := Walk([]string{dir}, visit); !errors.As(err, &none) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want one that ends in %q", err, want)
	}
}
