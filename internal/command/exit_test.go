package command

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/cluster"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin/llc"
)

// TestErrorText: errors that wrap each other name a package only at the beginning of the text.
func TestErrorText(t *testing.T) {
	wrapped := func(texts ...string) error {
		err := errors.New(texts[len(texts)-1])
		for i := len(texts) - 2; i >= 0; i-- {
			err = errors.Wrap(err, texts[i])
		}
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{wrapped("datasets: a: must be b"), "datasets: a: must be b"},
		{wrapped("pollen: calibrate", "datasets: d", "datasets: e", "datasets: f"), "pollen: calibrate: d: e: f"},
		{wrapped("pollen: run stopped", "pollen: no room"), "pollen: run stopped: no room"},
		{wrapped("start", "pollen: a is not the directory of a run", "pollen: b"), "start: a is not the directory of a run: b"},
		{wrapped("pollen: schedule", "optimizers: no schedule"), "pollen: schedule: no schedule"},
		{wrapped("pollen", "pollen: a"), "pollen: a"},
		{wrapped("pollen", "pollen", "pollen: a"), "pollen: a"},
		{wrapped("no package: samples"), "no package: samples"},
		{wrapped(""), ""},
		{wrapped("datasets", ""), "datasets: "},
		// Paths and the user's own text.
		{wrapped("datasets: datasets: must be one of"), "datasets: datasets: must be one of"},
		{wrapped("datasets: datasets", "datasets: must be one of"), "datasets: datasets: must be one of"},
		{wrapped("datasets: datasets", "open datasets: x"), "datasets: datasets: open datasets: x"},
		{wrapped("layers: a", `pollen: data: "cat: layers: dog: layers: x"`), `layers: a: data: "cat: layers: dog: layers: x"`},
		{wrapped(`pollen: data: "cat: layers: dog: layers: x"`), `pollen: data: "cat: layers: dog: layers: x"`},
		{wrapped("pollen: /a: pollen", "pollen: b"), "pollen: /a: pollen: b"},
		// Errors that add no text, or some at the end.
		{&bayes.InvalidError{Cause: wrapped("pollen: a", "pollen: b")}, "pollen: a: b"},
		{&bayes.DivergedError{Method: "SGLD", Cause: wrapped("pollen: a", "pollen: b"), Advice: "less"},
			"SGLD diverged: a: b; resuming would repeat this: start a new run with less"},
		{&bayes.DamagedError{File: "pollen: f", Cause: wrapped("pollen: a", "pollen: b")}, "pollen: pollen: f: a: b"},
	} {
		if got := errorText(c.err); got != c.want {
			t.Errorf("errorText(%q) = %q, want %q", c.err, got, c.want)
		}
	}
}

// The help of llc explains all verdicts on a row.
func TestVerdictsInHelp(t *testing.T) {
	_, help, _ := runInProcess("llc", "--help")
	for _, p := range []llc.Problem{llc.None, llc.Diverged, llc.Below, llc.Hot, llc.Moving, llc.Imprecise, llc.Steep, llc.Single} {
		if !strings.Contains(help, string(p)) {
			t.Errorf("the help of llc does not have the verdict %q", p)
		}
	}
}

// The time between two tables of status must be a number of seconds.
func TestWatch(t *testing.T) {
	for _, watch := range []string{"-1", "NaN", "1e12"} {
		if code, _, stderr := runInProcess("status", "--watch", watch, t.TempDir()); code != exitUsage || !strings.Contains(stderr, "--watch must be 0 to 86400 s") {
			t.Errorf("--watch %s: exit code %d, %s", watch, code, stderr)
		}
	}
}

// Status prints runs as JSON, also runs that cannot be read.
func TestStatusJSON(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if err := cmp.Or(os.Mkdir(run, 0o755), os.WriteFile(filepath.Join(run, rundir.ManifestFile), []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runInProcess("status", dir, "--json")
	var runs []cluster.RunStatus
	err := json.Unmarshal([]byte(stdout), &runs)
	if err != nil || code == 0 || len(runs) != 1 || runs[0].Run != run || runs[0].State != "unreadable" || runs[0].Error == "" {
		t.Errorf("exit code %d, %s, %s (%v)", code, stdout, stderr, err)
	}
	code, _, stderr = runInProcess("status", dir, "--json", "--watch", "1")
	if code != exitUsage || !strings.Contains(stderr, "cannot be combined with --watch") {
		t.Errorf("--json --watch: exit code %d, %s", code, stderr)
	}
	if code, stdout, _ := runInProcess("status", t.TempDir(), "--json"); code != exitFailure || stdout != "" {
		t.Errorf("without runs: exit code %d, %q", code, stdout)
	}
}

// Status waits for runs that do not exist yet.
func TestWatchBeforeRuns(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, out, _, _ := testConsole()
	c.out.To = writerFunc(func(text []byte) (int, error) {
		switch n, err := out.Write(text); {
		case strings.Contains(out.String(), "unreadable"):
			stop()
			return n, err
		case strings.Contains(out.String(), "no run in or below "+dir):
			run := filepath.Join(dir, "run")
			return n, cmp.Or(err, os.MkdirAll(run, 0o755), os.WriteFile(filepath.Join(run, rundir.ManifestFile), []byte("{}"), 0o644))
		default:
			return n, err
		}
	})
	command := statusCommand(c)
	command.SetArgs([]string{dir, "--watch", "0.01"})
	if err := command.ExecuteContext(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(out.String(), "1 unreadable") {
		t.Errorf("error %v after\n%s", err, out)
	}
}

// writerFunc is an io.Writer.
type writerFunc func(text []byte) (int, error)

func (w writerFunc) Write(text []byte) (int, error) { return w(text) }

// A size or kind that is given twice would be a column, or a weight, of its own.
func TestRepeatedPerturbations(t *testing.T) {
	for _, c := range []struct{ command, flag, words string }{
		{"attack", "--sizes=0.1,0.2,0.10", "--sizes has 0.1 twice"}, {"corrupt", "--kinds=jpeg,contrast,jpeg", "--kinds has jpeg twice"},
	} {
		if code, _, stderr := runInProcess(c.command, "run", c.flag); code != exitUsage || !strings.Contains(stderr, c.words) {
			t.Errorf("%s: exit code %d, %s, want %q", c.command, code, stderr, c.words)
		}
	}
}

// A run is not compared with itself, however its path is written.
func TestAgainstItself(t *testing.T) {
	for _, against := range []string{"run", "run/", "./run"} {
		if code, _, stderr := runInProcess("eval", "run", "--against", against); code != exitUsage || !strings.Contains(stderr, "must be another run") {
			t.Errorf("--against %s: exit code %d, %s", against, code, stderr)
		}
	}
}

// The help has the defaults of lists as they are given, and none that is empty.
func TestHelpOfLists(t *testing.T) {
	for command, want := range map[string]string{"attack": "(default 0.05,0.1,0.15,0.2,0.25,0.3)", "llc": "by the curvature of the loss)\n"} {
		if _, help, _ := runInProcess(command, "--help"); !strings.Contains(help, want) || strings.Contains(help, "Slice") {
			t.Errorf("%s: want %q in\n%s", command, want, help)
		}
	}
}
