package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/rundir"
)

// Arguments of serve are paths, with or without a name and version; a directory of runs has
// versions, in the order of their numbers.
func TestModelDirs(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"run", "a=b", "birds/2", "birds/10", "birds/1", "birds/beta", "birds/none"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(dir) == "none" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, rundir.ManifestFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for arguments, want := range map[string]string{
		"run":                  "[{run  run}]",
		"run/":                 "[{run  run/}]",
		"a=b":                  "[{a=b  a=b}]",
		"a=run":                "[{a  run}]",
		"a:7=run b=run":        "[{a 7 run} {b  run}]",
		"missing":              "[{missing  missing}]",
		"birds":                "[{birds 1 birds/1} {birds 2 birds/2} {birds 10 birds/10} {birds beta birds/beta}]",
		"x=birds run":          "[{x 1 birds/1} {x 2 birds/2} {x 10 birds/10} {x beta birds/beta} {run  run}]",
		"birds:2=birds/2":      "[{birds 2 birds/2}]",
		"=run":                 "pollen: serve: a model must be of the form NAME=DIR",
		"a:=run":               "pollen: serve: a model must be of the form NAME=DIR",
		"a=":                   "pollen: serve: a model must be of the form NAME=DIR",
		"birds:3=birds":        "birds has the versions 1, 2, 10, beta: it must be given without a version",
		"run=birds/none/../10": "[{run  birds/none/../10}]",
	} {
		got, err := modelDirs(strings.Fields(arguments))
		if text := fmt.Sprint(got); text != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s (%v), want %s", arguments, text, err, want)
		}
	}
}
