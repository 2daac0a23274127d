package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/progress"
)

// runInProcess runs a command line in this process.
func runInProcess(arguments ...string) (code int, stdout, stderr string) {
	var out, remarks bytes.Buffer
	code = run(arguments, &console{out: &progress.Results{To: &out}, err: &remarks, now: time.Now})
	return code, out.String(), remarks.String()
}

// Names in a foreign run reach the terminal without the sequences that control it.
func TestEscapesInNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "\x1b[2Jrun")
	code, stdout, stderr := runInProcess("predict", dir, "image.png")
	if code == 0 || strings.Contains(stdout+stderr, "\x1b") || !strings.Contains(stderr, `\u001b[2Jrun`) {
		t.Errorf("predict: exit code %d, %q, %q, want the name with escapes", code, stdout, stderr)
	}
	c, out, remarks, _ := testConsole()
	c.out.Write([]byte("\x1b[2J"))
	c.remark("%s", "\x1b[2J")
	if want := `\u001b[2J`; out.String() != want || remarks.String() != want+"\n" {
		t.Errorf("console: %q and %q, want %q", out, remarks, want)
	}
}

// A run on a read-only file system is scored, without a page in its directory.
func TestEvalOfReadOnlyRun(t *testing.T) {
	dir := t.TempDir()
	if err := letters.Write(filepath.Join(dir, "notmnist"), 200, 60); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POLLEN_DATA", dir)
	place := filepath.Join(dir, "run")
	flags := []string{"fit", "--method", "sgld", "--data", "notmnist", "--model", "mlp-10", "--epochs", "2", "--burn-in", "1", "--folder", place}
	if code, _, stderr := runInProcess(flags...); code != 0 {
		t.Fatalf("fit: exit code %d: %s", code, stderr)
	}
	_, want, _ := runInProcess("eval", place)
	end := file.Inject(func(call, _ string, _ int) (int, error) {
		if call == file.CallCreate {
			return 0, syscall.EROFS
		}
		return 0, nil
	})
	defer end()
	code, got, stderr := runInProcess("eval", place)
	if code != 0 || got != want || !strings.Contains(stderr, "no page: ") {
		t.Errorf("eval: exit code %d, %q, %s, want the scores %q and no page", code, got, stderr, want)
	}
	if code, _, stderr := runInProcess("eval", place, "--page", filepath.Join(dir, "page")); code != exitFailure {
		t.Errorf("eval --page where nothing can be written: exit code %d, %s, want %d", code, stderr, exitFailure)
	}
	for _, arguments := range [][]string{{"verify", place}, {"status", place}} {
		if code, _, stderr := runInProcess(arguments...); code != 0 {
			t.Errorf("%s: exit code %d: %s", arguments[0], code, stderr)
		}
	}
}
