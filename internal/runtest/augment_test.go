package runtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
)

func TestAugmentIsRefused(t *testing.T) {
	flip := bayes.Augment{Flip: true}
	for want, s := range map[string]bayes.Spec{
		"augment: shift must be at least 0 pixels, got -1":          {Augment: &bayes.Augment{Shift: -1}},
		"augment: rotation must be 0 to 180 degrees, got 200":       {Augment: &bayes.Augment{Rotation: 200}},
		"augment: zoom must be 0 to 4, got 5":                       {Augment: &bayes.Augment{Zoom: 5}},
		"augment: contrast must be 0 to 4, got -1":                  {Augment: &bayes.Augment{Contrast: -1}},
		"augment: brightness must be 0 to 4, got 9":                 {Augment: &bayes.Augment{Brightness: 9}},
		"augment: erase must be at least 0 and below 1, got 1":      {Augment: &bayes.Augment{Erase: 1}},
		"augment does not apply to hmc: its test compares":          {Augment: &flip, Method: methodOf(t, "hmc"), Epochs: 100},
		"augment does not apply to mala: its test compares":         {Augment: &flip, Method: methodOf(t, "mala")},
		"augment does not apply to random-walk: its test":           {Augment: &flip, Method: methodOf(t, "random-walk")},
		"augment cannot be combined with temperatures: swaps":       {Augment: &flip, Method: langevin.SGLD{}, Temperatures: []float64{1, 2}},
		"augment cannot be combined with an anchor, which is the g": {Augment: &flip, Anchor: 1},
	} {
		_, err := s.Resolve()
		wantInvalid(t, want, err, want)
	}
	for want, a := range map[string]bayes.Augment{
		"augment: shift must be below the side of the images, 12x12":   {Shift: 12},
		"augment: erase must be at least one pixel of images of 12x12": {Erase: 0.03},
	} {
		_, err := bayes.Try(context.Background(), bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Augment: &a}, squares(t, 100, 4, 1), 1)
		wantInvalid(t, want, err, want)
	}
}

// Each change of the images makes another run. A chain is the same on its own and among others. The
// batch may have all images.
func TestAugmentedRuns(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	seen := map[string]string{}
	for _, text := range []string{"", "flip", "shift=1", "rotation=5", "zoom=0.2", "contrast=0.5", "brightness=0.5", "erase=0.3"} {
		for _, method := range []string{"sgld", "adam"} {
			spec := bayes.Spec{Network: "mlp-3", Method: methodOf(t, method), Batch: 100, Epochs: 20, Chains: 2, Seed: 3}
			if text != "" {
				must(t, spec.Set("augment", text))
			}
			two := contents(t, fit(t, spec, data).Dir())
			metrics := string(two[rundir.MetricsFile])
			if other, ok := seen[metrics]; ok {
				t.Errorf("%s with %q has the metrics of %s", method, text, other)
			}
			seen[metrics] = method + " with " + text
			spec.Chains, spec.FirstChain = 1, 1
			for name, content := range contents(t, fit(t, spec, data).Dir()) {
				if strings.HasPrefix(name, "samples/") && string(content) != string(two[name]) {
					t.Errorf("%s with %q: %s of a chain on its own differs", method, text, name)
				}
			}
		}
	}
}

// Predictions use images as they are: the samples of an augmented run predict the same as another
// run's.
func TestAugmentLeavesPredictions(t *testing.T) {
	data := squares(t, 100, 4, 1)
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 8, Samples: 3, Seed: 3,
		Augment: &bayes.Augment{Flip: true, Shift: 2, Rotation: 20, Erase: 0.4}}
	run := fit(t, spec, trainOn(data))
	if got := run.Manifest().Spec.Augment; *got != *spec.Augment {
		t.Errorf("the manifest has %+v, want %+v", got, spec.Augment)
	}
	got, err := run.Predictions(context.Background(), data, nil)
	must(t, err)

	dir := filepath.Join(t.TempDir(), "plain")
	must(t, os.CopyFS(dir, os.DirFS(run.Dir())))
	manifest := readFile(t, dir, rundir.ManifestFile)
	without := strings.Replace(manifest, `"augment": "`+spec.Augment.String()+`",`, "", 1)
	if without == manifest {
		t.Fatalf("no augment in the manifest %s", manifest)
	}
	must(t, os.WriteFile(filepath.Join(dir, rundir.ManifestFile), []byte(resealed(t, without)), 0o644))
	plain, err := bayes.Open(dir)
	must(t, err)
	want, err := plain.Predictions(context.Background(), data, nil)
	must(t, err)
	for i := range want.Probabilities {
		if got.Probabilities[i] != want.Probabilities[i] {
			t.Fatalf("probability %d is %v, want %v", i, got.Probabilities[i], want.Probabilities[i])
		}
	}
}
