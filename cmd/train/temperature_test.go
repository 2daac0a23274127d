package main

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/tensor"
)

// A convolutional network at temperature 1 on batches of all the data: in equilibrium velocities have the requested temperature within 2 % in each
// layer, and configurations within 5 %. A run that is too short for that says so.
func TestTemperaturesOfAConvolutionalNetwork(t *testing.T) {
	const images = 50
	folder := t.TempDir()
	if err := writeLetters(folder, images, 20); err != nil {
		t.Fatal(err)
	}
	data, err := datasets.Load("notmnist", datasets.Train, datasets.Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	for _, sampler := range []string{"sghmc:0.2", "baoab:0.2", "sgnht:0.2"} {
		long, short := temperatures(t, sampler, 400, 150, data), temperatures(t, sampler, 10, 0, data)
		if len(long.layers) != 4 || math.IsNaN(long.all.kinetic) {
			t.Fatalf("%s: temperatures %+v of %d layers, wants kinetic ones of 4", sampler, long.layers, len(long.layers))
		}
		for _, layer := range long.layers {
			if !(math.Abs(layer.kinetic-1) <= kineticTolerance) {
				t.Errorf("%s: kinetic temperature %v in %s, wants 1", sampler, layer.kinetic, layer.name)
			}
			if !(math.Abs(layer.temperature-1) <= equilibriumTolerance) {
				t.Errorf("%s: configurational temperature %v in %s, wants 1", sampler, layer, layer.name)
			}
		}
		if notes := long.verdict(sampler, 1, 1); len(notes) > 0 {
			t.Errorf("%s: %q of a run in equilibrium", sampler, notes)
		}
		for _, what := range []string{"not in equilibrium", "kinetic temperature"} {
			if !slices.ContainsFunc(short.verdict(sampler, 1, 1), func(note string) bool { return strings.Contains(note, what) }) {
				t.Errorf("%s: no warning %q of a run of 10 steps", sampler, what)
			}
		}
	}
}

func temperatures(t *testing.T, sampler string, epochs, burnIn int, data *datasets.Dataset) result {
	t.Helper()
	host := tensor.NewHost(0)
	defer host.Close()
	c, _, _, _ := testConsole()
	config := defaultConfig()
	config.Data, config.Sampler, config.Batch, config.Epochs = "notmnist", sampler, data.Len(), epochs
	config.BurnIn, config.Schedule, config.Prior = &burnIn, "constant:0.01", new("gaussian:0.1")
	r, err := fit(context.Background(), config, sampler, filepath.Join(t.TempDir(), "run"), false, data, host, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
