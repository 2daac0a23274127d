package command

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// A gathering that fails leaves no directory, so that the same command can be repeated.
func TestFailedGatherLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	images := filepath.Join(dir, "notmnist")
	if err := letters.Write(images, 200, 60); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POLLEN_DATA", dir)
	part, place := filepath.Join(dir, "part"), filepath.Join(dir, "all")
	flags := []string{"fit", "--method", "sgld", "--data", "notmnist", "--model", "mlp-10", "--epochs", "2", "--burn-in", "1",
		"--validation", "0.25", "--folder", part}
	if code, _, stderr := runInProcess(flags...); code != 0 {
		t.Fatalf("fit: exit code %d: %s", code, stderr)
	}
	gather := func(what string, want int, text string) {
		t.Helper()
		code, stdout, stderr := runInProcess("gather", part, "--folder", place)
		_, err := os.Stat(place)
		if code != want || !strings.Contains(stderr, text) || os.IsNotExist(err) != (want != 0) {
			t.Errorf("gather %s: exit code %d: %s, the directory: %v, want exit code %d and %q", what, code, stderr, err, want, text)
		}
		_, chains, _ := strings.Cut(stdout, "split R-hat of predictions")
		_, row, _ := strings.Cut(chains, "\nsgld ")
		if fields := strings.Fields(row); want == 0 && (len(fields) < 3 || fields[2] == "-") {
			t.Errorf("gather %s: the row %q has no split R-hat of predictions", what, row)
		}
	}
	end := file.Inject(func(call, path string, _ int) (int, error) {
		if call == file.CallRename && filepath.Base(path) == rundir.CalibrationFile {
			return 0, syscall.ENOSPC
		}
		return 0, nil
	})
	gather("on a full disk", exitFailure, "all is removed, because it is not complete")
	end()
	if err := os.Rename(images, images+"2"); err != nil {
		t.Fatal(err)
	}
	gather("without data", exitFailure, "notmnist")
	if err := os.Rename(images+"2", images); err != nil {
		t.Fatal(err)
	}
	gather("again", 0, "")
}
