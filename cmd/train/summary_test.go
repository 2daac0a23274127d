package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/datasets"
)

// wave is a trace that mixes: its halves are alike.
func wave(length int) []float64 {
	trace := make([]float64, length)
	for i := range trace {
		trace[i] = math.Sin(float64(7 * i))
	}
	return trace
}

func TestPrintRuns(t *testing.T) {
	sgld, sgd := defaultConfig(), defaultConfig()
	sgld.Temperature = new(1.0)
	sgd.Sampler = "sgd"
	all := func(temperature, standardError, kinetic float64) layerTemperature {
		return layerTemperature{"all", temperature, standardError, kinetic}
	}
	layers := func(a, b, standardError float64) []layerTemperature {
		return []layerTemperature{{"conv1", a, standardError, math.NaN()}, {"linear1", b, 0.01, math.NaN()}}
	}
	jump := append(make([]float64, 500), slices.Repeat([]float64{1}, 500)...)
	kinetic := layers(1, 1.09, 0.04)
	kinetic[0].kinetic, kinetic[1].kinetic, kinetic[1].standardError = 0.99, 1.03, 0.05
	mixed := [][]float64{wave(1000)}
	none := math.NaN()
	results := []result{
		{config: sgd, watched: "conv1.weight[3]", samples: 1, seconds: 12.3, all: all(none, none, none)},
		{config: sgld, samples: 10, seconds: 99.6, all: all(1.04, 0.003, 0.998), layers: kinetic, lossTrace: mixed, weightTrace: mixed},
		{config: sgld, samples: 10, all: all(0.5, 0.02, none), layers: layers(0.4, 0.96, none), lossTrace: mixed, weightTrace: [][]float64{jump}},
		{config: sgld, samples: 10, all: all(1.01, 0.02, none), layers: layers(1.5, 0.96, 0.3), lossTrace: mixed, weightTrace: mixed},
		{config: sgld, all: all(none, none, none), layers: layers(none, none, none)},
	}
	c, out, _, _ := testConsole()
	if err := printRuns([]string{"SGD", "good", "cold", "vague", "resumed"}, results, c); err != nil {
		t.Fatal(err)
	}
	want := `run      samples  seconds  split R-hat of the loss  of conv1.weight[3]
----------------------------------------------------------------------
SGD            1       12                        -                   -
good          10      100                    0.999               0.999
cold          10        0                    0.999                +Inf
vague         10        0                    0.999               0.999
resumed        0        0                        -                   -

temperature    requested      measured      conv1      linear1
--------------------------------------------------------------
good                   1  1.04 ± 0.003   1 ± 0.04  1.09 ± 0.05
good, kinetic          1         0.998       0.99         1.03
cold                   1    0.5 ± 0.02        0.4  0.96 ± 0.01
vague                  1   1.01 ± 0.02  1.5 ± 0.3  0.96 ± 0.01
Measured temperatures, in all and by layer, with standard errors, are configurational: in equilibrium they are the requested one.
Kinetic ones, of samplers with momentum, are the velocities', which settle far sooner.
good: kinetic temperature 1.03 in linear1, requested 1. Smaller rates or larger batches would bring it closer.
cold: not in equilibrium: measured temperature 0.5 ± 0.02 in all, 0.4 in conv1, requested 1.
cold: not mixed: split R-hat above 1.01. A longer run would come closer.
vague: too short to tell whether it is in equilibrium: the standard error is above 5 % in conv1.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A posterior at temperature 0 is a point: there is no equilibrium to miss.
func TestTemperatureZeroIsNoVerdict(t *testing.T) {
	config := defaultConfig()
	config.Temperature = new(0.0)
	r := result{config: config, all: layerTemperature{"all", 3, 0.1, math.NaN()}}
	if notes := r.verdict("sgld", 1, 1); len(notes) > 0 {
		t.Errorf("%q", notes)
	}
}

// A run whose last steps guess says so.
func TestWarn(t *testing.T) {
	for loss, want := range map[float64]bool{2.3026: true, 7: true, 1.9: false, 0: false} {
		c, _, messages, _ := testConsole()
		f := fitting{console: c, data: &datasets.Dataset{Classes: 10}, loss: loss}
		f.warn("SGD")
		if got := strings.Contains(messages.String(), "guessing among 10 classes, 2.303"); got != want {
			t.Errorf("the loss %v: %q", loss, messages)
		}
	}
}
