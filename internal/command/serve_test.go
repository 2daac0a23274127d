package command

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/devices"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/serve"
)

// serve reports at startup why answers lack sets or decisions.
func TestServeReportsWhatIsMissing(t *testing.T) {
	images, labels := make([]byte, 40*16), make([]int32, 40)
	for i := range images {
		images[i], labels[i/16] = byte(i*i), int32(i/16%2)
	}
	all, err := datasets.New("noise", images, labels, 1, 4, 4, nil)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	train, held, err := all.Split(25)
	check(err)
	dir := filepath.Join(t.TempDir(), "run")
	spec := bayes.Spec{Network: "mlp-2", Method: optimizers.SGD{}, Batch: 5, Epochs: 1}
	_, err = bayes.Fit(t.Context(), spec, &datasets.Splits{Train: train, Validation: held}, dir)
	check(err)
	ended, end := context.WithCancel(t.Context())
	end()
	c, _, remarks, _ := testConsole()
	s := serveFlags{device: deviceFlags{devices.Options{Name: "cpu"}}, address: "localhost:0",
		guarantees: guaranteeFlags{level: 0.9, inDistributionRate: 0.95, sets: "threshold", riskConfidence: 0.9}}
	check(s.run(ended, []string{dir}, c))
	const want = "has no in-distribution decisions: --in-distribution-rate 0.95 needs 19 held-out images, got 15; " +
		"use --in-distribution-rate 0.93, or calibrate with more images\n"
	if strings.Count(remarks.String(), "has no ") != 1 || !strings.Contains(remarks.String(), want) {
		t.Errorf("remarks are %q, want once %q", remarks, want)
	}
}

// Versions of a model that differ in their classes or in their images are remarked on.
func TestRemarkVersions(t *testing.T) {
	open := func(side int, classes ...string) *bayes.Run {
		t.Helper()
		labels := make([]int32, 2*len(classes))
		for i := range labels {
			labels[i] = int32(i % len(classes))
		}
		data, err := datasets.New("noise", make([]byte, len(labels)*side*side), labels, 1, side, side, classes)
		if err != nil {
			t.Fatal(err)
		}
		spec := bayes.Spec{Network: "mlp-2", Method: optimizers.SGD{}, Batch: 2, Epochs: 1}
		run, err := bayes.Fit(t.Context(), spec, &datasets.Splits{Train: data}, filepath.Join(t.TempDir(), "run"))
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	ab, many, large := open(4, "a", "b"), open(4, "a", "b", "c", "d", "e"), open(5, "a", "b")
	c, _, remarks, _ := testConsole()
	remarkVersions([]serve.Model{{Name: "x", Run: ab}, {Name: "y", Run: many}, {Name: "x", Version: "2", Run: ab}, {Name: "z", Run: large}}, c)
	if remarks.Len() > 0 {
		t.Errorf("remarks %q on models that do not differ", remarks)
	}
	remarkVersions([]serve.Model{{Name: "x", Run: ab}, {Name: "x", Version: "2", Run: many}, {Name: "x", Version: "3", Run: many}}, c)
	remarkVersions([]serve.Model{{Name: "x", Run: ab}, {Name: "x", Version: "2", Run: large}}, c)
	want := "serve: versions 1 and 2 of x have different classes, (a, b) and (a, b, c and 2 others); a request without a version gets the last one. " +
		"Other models can have names of their own: NAME=" + many.Dir() + "\n" +
		"serve: versions 1 and 2 of x have different sizes of images, 1x4x4 and 1x5x5; a request without a version gets the last one. " +
		"Other models can have names of their own: NAME=" + large.Dir() + "\n"
	if remarks.String() != want {
		t.Errorf("remarks are %q, want %q", remarks, want)
	}
}

// Of 126 images, a fifth are 25 or, in whole groups, perhaps only 18.
func TestFractionFor(t *testing.T) {
	for _, c := range []struct {
		required, images int
		grouped          bool
		want             float64
	}{{19, 126, false, 0.2}, {19, 126, true, 0.25}, {19, 1000, false, 0.05}, {19, 380, false, 0.05}} {
		if got := fractionFor(c.required, c.images, c.grouped); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
