package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// A run is served with the range of its floating-point pixels, and without the column of its
// groups, as predict reads them.
func TestOpenModels(t *testing.T) {
	run, data := t.TempDir(), t.TempDir()
	for i, name := range []string{"train", "test"} {
		text := "label,patient,p0,p1,p2,p3\n"
		for row := range 4 {
			text += fmt.Sprintf("%d,%d,%g,0.1,0.2,0.3\n", row%2, 4*i+row, 0.5*float64(row%2))
		}
		if err := os.WriteFile(filepath.Join(data, name+".csv"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, _, stderr := runInProcess("fit", "--data", data, "--group", "column=patient", "--float-max", "1", "--validation", "0",
		"--model", "mlp-2", "--method", "sgd", "--epochs", "1", "--batch", "2", "--folder", run)
	if code != 0 {
		t.Fatal(stderr)
	}
	models, err := openModels([]modelDir{{dir: run}}, nil)
	if err != nil || models[0].FloatMax != 1 || !slices.Equal(models[0].OtherColumns, []string{"patient"}) {
		t.Errorf("%+v, %v, want pixels up to 1 and the other column patient", models, err)
	}
}
