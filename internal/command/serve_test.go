package command

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/optimizers"
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
	s := serveFlags{device: deviceFlags{bayes.DeviceOptions{Name: "cpu"}}, address: "localhost:0",
		guarantees: guaranteeFlags{level: 0.9, inDistributionRate: 0.95, sets: "threshold", riskConfidence: 0.9}}
	check(s.run(ended, []string{dir}, c))
	const want = "has no in-distribution decisions: --in-distribution-rate 0.95 needs 19 held-out images, got 15; " +
		"use --in-distribution-rate 0.93, or calibrate with more images\n"
	if strings.Count(remarks.String(), "has no ") != 1 || !strings.Contains(remarks.String(), want) {
		t.Errorf("remarks are %q, want once %q", remarks, want)
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
