package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// runOf is a run's folder of a specification and what its chains did.
func runOf(t *testing.T, spec pollen.Spec, d *pollen.Diagnostics) *pollen.Run {
	t.Helper()
	folder := t.TempDir()
	resolved, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	data := pollen.Data{
		Name: "squares", Size: 100, Channels: 1, Height: 2, Width: 2, ClassNames: []string{"a", "b"}, Mean: []float64{0.5}, Deviation: []float64{0.5},
	}
	manifest := pollen.Manifest{Format: 2, Spec: resolved, Data: data, Steps: 8, Parameters: 10}
	for name, content := range map[string]any{"diagnostics.json": d, manifestFile: manifest} {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run, err := pollen.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestPrintChains(t *testing.T) {
	none := pollen.Number(math.NaN())
	all := func(temperature, standardError, kinetic pollen.Number) pollen.Temperature {
		return pollen.Temperature{Layer: "all", Configurational: temperature, StandardError: standardError, Kinetic: kinetic}
	}
	conv := func(temperature, standardError, kinetic pollen.Number) pollen.Temperature {
		return pollen.Temperature{Layer: "conv1", Configurational: temperature, StandardError: standardError, Kinetic: kinetic}
	}
	linear := func(temperature, standardError, kinetic pollen.Number) pollen.Temperature {
		return pollen.Temperature{Layer: "linear1", Configurational: temperature, StandardError: standardError, Kinetic: kinetic}
	}
	sgd, sgld := pollen.Spec{Method: optimizers.SGD{}}, pollen.Spec{Method: langevin.SGLD{}}
	of := func(samples, made int, rHat, weightRHat pollen.Number, temperatures ...pollen.Temperature) *pollen.Diagnostics {
		return &pollen.Diagnostics{
			Samples: samples, Made: made, Watched: "conv1.weight[3]", LossRHat: rHat, WeightRHat: weightRHat, Temperatures: temperatures,
			Acceptance: none, Swaps: none,
		}
	}
	var runs []compared
	for _, r := range []struct {
		name string
		spec pollen.Spec
		d    *pollen.Diagnostics
	}{
		{"SGD", sgd, of(1, 12, none, none, all(none, none, none))},
		{"good", sgld, of(10, 100, 0.999, 0.999, all(1.04, 0.003, 0.998), conv(1, 0.04, 0.99), linear(1.09, 0.05, 1.03))},
		{"cold", sgld, of(10, 100, 0.999, 3, all(0.5, 0.02, none), conv(0.4, none, none), linear(0.96, 0.01, none))},
		{"vague", sgld, of(10, 100, 0.999, 0.999, all(1.01, 0.02, none), conv(1.5, 0.3, none), linear(0.96, 0.01, none))},
		{"resumed", sgld, of(0, 100, none, none, all(none, none, none), conv(none, none, none), linear(none, none, none))},
	} {
		runs = append(runs, compared{name: r.name, run: runOf(t, r.spec, r.d)})
	}
	c, out, _, _ := testConsole()
	if err := printChains(runs, c); err != nil {
		t.Fatal(err)
	}
	want := `run      samples  steps  split R-hat of the loss  of conv1.weight[3]
--------------------------------------------------------------------
SGD            1     12                        -                   -
good          10    100                    0.999               0.999
cold          10    100                    0.999               3.000
vague         10    100                    0.999               0.999
resumed        0    100                        -                   -

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
	none := pollen.Number(math.NaN())
	o := observed{
		&pollen.Diagnostics{Acceptance: none, Temperatures: []pollen.Temperature{{Layer: "all", Configurational: 3, StandardError: 0.1, Kinetic: none}}},
		"sgld", pollen.Spec{Method: langevin.SGLD{}, Temperature: new(0.0)},
	}
	if notes := o.verdict(); len(notes) > 0 {
		t.Errorf("%q", notes)
	}
}

// Trajectories that diverged are told of.
func TestDivergedIsSaid(t *testing.T) {
	for want, share := range map[string]pollen.Number{"": 0, "nuts: 2.5 % of the trajectories diverged": 0.025} {
		o := observed{&pollen.Diagnostics{Acceptance: 0.8, Diverged: share}, "nuts", pollen.Spec{Method: pollen.NUTS{}, Temperature: new(1.0)}}
		if notes := strings.Join(o.verdict(), "\n"); strings.Contains(notes, "diverged") != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%v: %q, want %q", share, notes, want)
		}
	}
}

// Large errors are written without exponents.
func TestWithError(t *testing.T) {
	for want, given := range map[string][2]pollen.Number{
		"1.04 ± 0.003": {1.04, 0.003}, "1 ± 9": {1, 9.4}, "64.7 ± 10": {64.7, 9.6}, "64.7 ± 123": {64.7, 123}, "2": {2, pollen.Number(math.NaN())},
	} {
		if got := withError(pollen.Temperature{Configurational: given[0], StandardError: given[1]}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
