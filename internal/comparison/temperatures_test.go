package comparison

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// A convolutional network at temperature 1 on batches of all the data: in equilibrium velocities
// have the requested temperature within 2 % in each layer, and configurations within 5 %. A run
// that is too short for that reports it.
func TestTemperaturesOfAConvolutionalNetwork(t *testing.T) {
	const images = 50
	dir := t.TempDir()
	if err := letters.Write(dir, images, 20); err != nil {
		t.Fatal(err)
	}
	data, err := datasets.Load("notmnist", datasets.Train, datasets.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range testenv.Some(t, 1, []string{"sghmc:0.2", "baoab:0.2", "sgnht:0.2"}) {
		long, short := observe(t, method, "400", "150", data), observe(t, method, "10", "0", data)
		if len(long.Temperatures) != 5 || isNaN(long.Temperatures[0].Kinetic) {
			t.Fatalf("%s: temperatures %+v, want kinetic ones of all and of 4 layers", method, long.Temperatures)
		}
		for _, layer := range long.Temperatures[1:] {
			if !(math.Abs(float64(layer.Kinetic)-1) <= 0.02) {
				t.Errorf("%s: kinetic temperature %v in %s, want 1", method, layer.Kinetic, layer.Layer)
			}
			if !(math.Abs(float64(layer.Configurational)-1) <= 0.05) {
				t.Errorf("%s: configurational temperature %s in %s, want 1", method, withError(layer), layer.Layer)
			}
		}
		// Nothing is held out, so that modes are not compared.
		want := "at its temperature: every layer is within 5 % of T = 1, but no held-out images show whether chains agree in their predictions"
		if got := long.Verdict(1); got.Text != want || !got.AtTemperature || got.InEquilibrium {
			t.Errorf("%s: %+v of a run in equilibrium, want %q", method, got, want)
		}
		if got := short.Verdict(1); !strings.HasPrefix(got.Text, "not in equilibrium: 0 % of the weights are within 5 % of T = 1; ") {
			t.Errorf("%s: %q of a run of 10 steps", method, got.Text)
		}
	}
}

func observe(t *testing.T, method, epochs, burnIn string, data *datasets.Dataset) observed {
	t.Helper()
	spec := bayes.Spec{Batch: data.Len(), Seed: 1}
	for _, s := range [][2]string{
		{"method", method}, {"epochs", epochs}, {"burn-in", burnIn}, {"schedule", "constant:0.01"}, {"prior", "gaussian:0.1"},
	} {
		if err := spec.Set(s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	run, err := bayes.Fit(context.Background(), spec, &datasets.Splits{Train: data}, filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := run.Diagnostics()
	if err != nil {
		t.Fatal(err)
	}
	return observed{d, method, run.Manifest().Spec}
}
