package main

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	layers := func(a, b float64) []layerTemperature {
		return []layerTemperature{{"conv1", a, math.NaN()}, {"linear1", b, math.NaN()}}
	}
	jump := append(make([]float64, 500), slices.Repeat([]float64{1}, 500)...)
	kinetic := layers(1, 1.1)
	kinetic[0].kinetic, kinetic[1].kinetic = 0.99, 1.03
	results := []result{
		{config: sgd, watched: "conv1.weight[3]", samples: 1, seconds: 12.3, temperature: 0.0123, kinetic: math.NaN(), layers: layers(0.01, 0.02)},
		{config: sgld, samples: 10, seconds: 99.6, temperature: 1.04, kinetic: 0.998, layers: kinetic,
			lossTrace: [][]float64{wave(1000)}, weightTrace: [][]float64{wave(1000)}},
		{config: sgld, samples: 10, temperature: 0.5, kinetic: math.NaN(), layers: layers(0.4, 0.6),
			lossTrace: [][]float64{wave(1000)}, weightTrace: [][]float64{jump}},
		{config: sgld, temperature: math.NaN(), kinetic: math.NaN(), layers: layers(math.NaN(), math.NaN())},
	}
	c, out, _, _ := testConsole()
	if err := printRuns([]string{"SGD", "good", "short", "resumed"}, results, c); err != nil {
		t.Fatal(err)
	}
	want := `run      samples  seconds  split R-hat of the loss  of conv1.weight[3]
----------------------------------------------------------------------
SGD            1       12                        -                   -
good          10      100                    0.999               0.999
short         10        0                    0.999                +Inf
resumed        0        0                        -                   -

temperature    requested  measured  conv1  linear1
--------------------------------------------------
SGD                    -    0.0123   0.01     0.02
good                   1      1.04      1      1.1
good, kinetic          1     0.998   0.99     1.03
short                  1       0.5    0.4      0.6
resumed                1         -      -        -
Measured temperatures, in all and by layer, are configurational: in equilibrium they are the requested one.
Kinetic ones, of samplers with momentum, are the velocities', which settle far sooner.
good: kinetic temperature 1.03 in linear1, requested 1. Smaller rates or larger batches would bring it closer.
short: not in equilibrium: measured temperature 0.5, requested 1.
short: not mixed: split R-hat above 1.01. A longer run would come closer.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A posterior at temperature 0 is a point: there is no equilibrium to miss.
func TestTemperatureZeroIsNoVerdict(t *testing.T) {
	config := defaultConfig()
	config.Temperature = new(0.0)
	r := result{config: config, temperature: 3}
	if notes := r.verdict("sgld", 1, 1); len(notes) > 0 {
		t.Errorf("%q", notes)
	}
}
