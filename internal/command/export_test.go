package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without test images, export writes what does not need them, and says what is missing.
func TestExportWithoutTestImages(t *testing.T) {
	dir := t.TempDir()
	images, run := filepath.Join(dir, "flowers"), filepath.Join(dir, "run")
	if err := writeImages(images, 2, 30); err != nil {
		t.Fatal(err)
	}
	succeed(t, "fit", "--data", images, "--test", "0", "--model", "mlp-10", "--method", "sghmc", "--epochs", "2", "--burn-in", "1", "--folder", run)
	for to, want := range map[string]string{
		"onnx": "", "torch": "", "tensorboard": "", "npz": "--to npz predicts test images, and ",
		"arviz": "has no test images, so that there are no scores and no predictions", "card": "has no test images, so that there are no scores and no predictions",
	} {
		out := filepath.Join(dir, "out-"+to)
		code, _, stderr := runInProcess("export", run, "--to", to, "--out", out)
		_, err := os.Stat(out)
		if wantCode := map[bool]int{true: exitUsage}[to == "npz"]; code != wantCode || !strings.Contains(stderr, want) || (err == nil) != (code == 0) {
			t.Errorf("--to %s: exit code %d: %s (%v), want %d and %q", to, code, stderr, err, wantCode, want)
		}
	}
	other := filepath.Join(dir, "other")
	for _, split := range []string{"train", "test"} {
		if err := writeImages(filepath.Join(other, split), 2, 5); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, "export", run, "--to", "npz", "--data", other, "--out", filepath.Join(dir, "out-npz"))
}
