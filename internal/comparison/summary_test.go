package comparison

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/report"
)

// runOf returns a run with a specification and diagnostics, without training it.
func runOf(t *testing.T, spec bayes.Spec, d *diagnostics.Report) *bayes.Run {
	t.Helper()
	dir := t.TempDir()
	resolved, err := spec.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	data := bayes.Data{
		Name: "squares", Size: 100, Channels: 1, Height: 2, Width: 2, ClassNames: []string{"a", "b"}, Mean: []float64{0.5}, Std: []float64{0.5},
	}
	manifest := bayes.Manifest{Format: 1, Spec: resolved, Data: data, Steps: 8, Parameters: 10}
	for name, content := range map[string]any{"diagnostics.json": d, config.ManifestFile: manifest} {
		text, err := checksum.JSON(content, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run, err := bayes.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// textOf is a summary as text.
func textOf(t *testing.T, s Summary) string {
	t.Helper()
	var text strings.Builder
	for _, table := range append([]*report.Table{s.Chains}, s.Temperatures...) {
		if err := table.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		text.WriteString("\n")
	}
	return text.String() + strings.Join(s.Notes, "\n") + "\n"
}

func TestSummarize(t *testing.T) {
	none := diagnostics.Number(math.NaN())
	layer := func(name string, weights int) func(temperature, standardError, kinetic, heating diagnostics.Number) diagnostics.Temperature {
		return func(temperature, standardError, kinetic, heating diagnostics.Number) diagnostics.Temperature {
			drift := temperature - kinetic
			if isNaN(kinetic) {
				drift = temperature - 1 - heating
			}
			return diagnostics.Temperature{
				Layer: name, Weights: weights, Configurational: temperature, StandardError: standardError, Kinetic: kinetic, Drift: drift, GradientNoise: heating,
			}
		}
	}
	all, conv, linear := layer("all", 200), layer("conv1", 8), layer("linear1", 192)
	sgd, sgld := bayes.Spec{Method: optimizers.SGD{}}, bayes.Spec{Method: langevin.SGLD{}}
	of := func(samples, made int, rHat, weightRHat diagnostics.Number, temperatures ...diagnostics.Temperature) *diagnostics.Report {
		return &diagnostics.Report{
			Samples: samples, Made: made, Watched: "conv1.weight[3]", LossRHat: none, WeightRHat: weightRHat, Temperatures: temperatures,
			Acceptance: none, Swaps: none, Predicted: &diagnostics.Mixing{Images: 50, RHat: rHat, BulkESS: 10 * rHat, TailESS: 7 * rHat},
		}
	}
	old := of(10, 100, none, 0.999, all(1, 0.01, none, 0), conv(1, 0.01, none, 0), linear(1, 0.01, none, 0))
	for i := range old.Temperatures {
		old.Temperatures[i].Weights, old.Temperatures[i].Drift = 0, 0
	}
	old.Predicted = nil
	var names []string
	var runs []*bayes.Run
	for _, r := range []struct {
		name string
		spec bayes.Spec
		d    *diagnostics.Report
	}{
		{"SGD", sgd, of(1, 12, none, none, all(none, none, none, none))},
		{"good", sgld, of(10, 100, 0.999, 0.999, all(1.04, 0.003, 0.998, 0.2), conv(1, 0.04, 0.99, 0.5), linear(1.09, 0.05, 1.03, 0.1))},
		{"cold", sgld, of(10, 100, 3, 0.999, all(0.9, 0.02, none, 0.02), conv(1, 0.01, none, 0.01), linear(0.9, 0.02, none, 0.03))},
		{"hot", sgld, of(10, 100, 0.999, 3, all(1.2, 0.02, none, 0.2), conv(1.5, 0.1, none, 0.06), linear(1.2, 0.01, 1.2, 0.2))},
		{"vague", sgld, of(10, 100, 0.999, 0.999, all(1.01, 0.02, none, 0), conv(1.5, 0.3, none, 0), linear(0.96, 0.01, none, 0))},
		{"resumed", sgld, of(0, 100, none, none, all(none, none, none, none), conv(none, none, none, none), linear(none, none, none, none))},
		{"old", sgld, old},
	} {
		names, runs = append(names, r.name), append(runs, runOf(t, r.spec, r.d))
	}
	s, err := Summarize(names, runs, make([]*diagnostics.Mixing, len(runs)))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.NewReplacer("split R-hat of predictions is ", "R-hat ", "not in equilibrium", "no", "the scale of the logits", "scale").Replace(textOf(t, s))
	want := `run      samples  steps  split R-hat of predictions  of conv1.weight[3]  ESS of predictions  in the tails
---------------------------------------------------------------------------------------------------------
SGD            1     12                           -                   -                   -             -
good          10    100                       0.999               0.999                  10             7
cold          10    100                       3.000               0.999                  30            21
hot           10    100                       0.999               3.000                  10             7
vague         10    100                       0.999               0.999                  10             7
resumed        0    100                           -                   -                   -             -
old           10    100                           -               0.999                   -             -

temperature  requested       measured        conv1      linear1
---------------------------------------------------------------
good                 1  1.040 ± 0.003  1.00 ± 0.04  1.09 ± 0.05
  kinetic                       0.998         0.99         1.03
  drift                         +0.04        +0.01        +0.06
  noise                         +0.20        +0.50        +0.10
cold                 1    0.90 ± 0.02  1.00 ± 0.01  0.90 ± 0.02
  drift                         -0.12        -0.01        -0.13
  noise                         +0.02        +0.01        +0.03
hot                  1    1.20 ± 0.02    1.5 ± 0.1  1.20 ± 0.01
  drift                         -0.00        +0.44        +0.00
  noise                         +0.20        +0.06        +0.20
vague                1    1.01 ± 0.02    1.5 ± 0.3  0.96 ± 0.01
  drift                         +0.01        +0.50        -0.04
  noise                         +0.00        +0.00        +0.00
old                  1    1.00 ± 0.01  1.00 ± 0.01  1.00 ± 0.01

Predictions of 50 held-out images: split R-hat is the 95th percentile over images, the effective sample size (ESS) is the median.
The ESS counts the chains' states over all steps, not only the samples, so it can exceed their number.
Measured temperatures, in total and by layer, are configurational, with standard errors; in equilibrium they equal the requested one.
Kinetic: temperature of the velocities. Drift: of weights that still grow (-) or shrink (+). Noise: the relative heating by minibatch
noise that the sampler does not correct; without velocities, drift is the rest that this estimate does not explain.
All weights count alike here. Predictions depend on a few directions of weight space, which minibatch noise heats most.
good: in equilibrium: R-hat 0.999 (10 effective samples); every layer is within 5 % of T = 1.
cold: no: R-hat 3.000 (30 effective samples over all steps, 10 kept); 4 % of the weights are within 5 % of T = 1; still growing: linear1 (scale still grows).
hot: no: R-hat 0.999 (10 effective samples); 0 % of the weights are within 5 % of T = 1; heated by the noise of minibatches: conv1, linear1.
vague: no: R-hat 0.999 (10 effective samples); 96 % of the weights are within 5 % of T = 1; in too short a run to tell: conv1.
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"cold", "hot", "vague"}, s.NotInEquilibrium); diff != "" {
		t.Error(diff)
	}
}

// The table of chains has the temperatures of predictions last, and a note with their consequence.
// A single run has the command that helps most.
func TestPredictionTemperaturesComeLast(t *testing.T) {
	none := diagnostics.Number(math.NaN())
	d := &diagnostics.Report{
		Samples: 40, Made: 9, Watched: "w", WeightRHat: none, LossRHat: none, Acceptance: none, Swaps: none,
		Temperatures: []diagnostics.Temperature{
			{Layer: "all", Weights: 4, Configurational: 1, StandardError: 0.01, Kinetic: 1, Drift: none, GradientNoise: none},
			{Layer: "linear1", Weights: 4, Configurational: 1, StandardError: 0.01, Kinetic: 1, Drift: none, GradientNoise: none},
		},
		Predicted:     &diagnostics.Mixing{Images: 50, Chains: 4, RHat: 1.2, BulkESS: 12, TailESS: 30},
		Predictions:   &diagnostics.Measured{Value: 101.8, StandardError: 16.8, Groups: 4},
		Determination: &diagnostics.Measured{Value: 1.42, StandardError: 0.03, Groups: 16},
	}
	heated := runOf(t, bayes.Spec{Method: langevin.SGHMC{Friction: 0.1}, Schedule: optimizers.Constant{Rate: 0.02}, Epochs: 8, Chains: 4}, d)
	s, err := Summarize([]string{"heated"}, []*bayes.Run{heated}, []*diagnostics.Mixing{nil})
	if err != nil {
		t.Fatal(err)
	}
	if s.Next != "fit --config "+filepath.Join(heated.Dir(), config.ManifestFile)+" --schedule constant:0.005 --epochs 32" {
		t.Errorf("next is %q", s.Next)
	}
	got, _, _ := strings.Cut(textOf(t, s), "\n\n")
	want := `run     samples  steps  split R-hat of predictions  of w  ESS of predictions  in the tails  T by determination     by curvature
-------------------------------------------------------------------------------------------------------------------------------
heated       40      9                       1.200     -                  12            30         1.42 ± 0.03  100 (50 to 160)`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if notes := strings.Join(s.Notes, " "); !strings.Contains(notes, "total variation of 0.043 to 0.050") || !strings.Contains(notes,
		"at its temperature within one mode: split R-hat of predictions is 1.200 (12 effective samples); every layer is within 5 % of T = 1; alarm: ") {
		t.Errorf("notes are %q", notes)
	}
	for _, note := range s.Notes { // each is a paragraph of a page
		if !strings.HasSuffix(note, ".") {
			t.Errorf("a note ends within a sentence: %q", note)
		}
	}
}

// The temperatures of several layers have a range.
func TestTemperatureRange(t *testing.T) {
	head := diagnostics.Temperature{Layer: "head", Configurational: 1, StandardError: 0.01}
	conv := diagnostics.Temperature{Layer: "conv", Configurational: 2, StandardError: 0.01}
	for want, all := range map[string][]diagnostics.Temperature{
		"auto: temperature 1.00 ± 0.01 of 1.":                                              {head, head},
		"auto: temperature 1.00 ± 0.01 of 1, by layer 1 (head) to 2 (conv): see the page.": {head, head, conv},
	} {
		o := observed{&diagnostics.Report{Temperatures: all}, "auto", bayes.Spec{Temperature: new(1.0)}}
		if got := o.temperatureRange(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The next command is a smaller rate, more chains, a longer run, or predictions.
func TestNext(t *testing.T) {
	rate := optimizers.Constant{Rate: 0.1}
	for want, c := range map[string]struct {
		spec  bayes.Spec
		rHat  diagnostics.Number
		layer diagnostics.Temperature
	}{
		"predict dir IMAGE...":                                {bayes.Spec{Chains: 4}, 1.01, diagnostics.Temperature{Configurational: 1, Kinetic: 1}},
		"fit --config dir/manifest.json --chains 4":           {bayes.Spec{Chains: 1}, 1.2, diagnostics.Temperature{Configurational: 1, Kinetic: 1}},
		"fit --config dir/manifest.json --start dir --seed 8": {bayes.Spec{Chains: 4, Seed: 7}, 1.2, diagnostics.Temperature{Configurational: 0.5, Kinetic: 1}},
		"fit --config dir/manifest.json --schedule constant:0.025 --epochs 32": {
			bayes.Spec{Chains: 4, Epochs: 8, Schedule: rate}, 1.01, diagnostics.Temperature{Configurational: 1.4, Kinetic: 1.4}},
		"": {bayes.Spec{Chains: 4}, 1.2, diagnostics.Temperature{Configurational: diagnostics.Number(math.NaN())}},
	} {
		c.layer.Layer, c.layer.Weights, c.layer.StandardError, c.spec.Temperature = "a", 1, 0.01, new(1.0)
		o := observed{
			&diagnostics.Report{Temperatures: []diagnostics.Temperature{{}, c.layer}, Predicted: &diagnostics.Mixing{Chains: c.spec.Chains, RHat: c.rHat}}, "a", c.spec,
		}
		if got := filepath.ToSlash(o.next("dir")); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
		quoted := strings.NewReplacer("dir/manifest.json", "'a dir/manifest.json'", " dir ", " 'a dir' ").Replace(want)
		if got := filepath.ToSlash(o.next("a dir")); got != quoted {
			t.Errorf("%+v: %q, want %q", c, got, quoted)
		}
	}
}

// A posterior at temperature 0 is a point: there is no equilibrium to miss.
func TestTemperatureZeroIsNoVerdict(t *testing.T) {
	none := diagnostics.Number(math.NaN())
	o := observed{
		&diagnostics.Report{Acceptance: none, Temperatures: []diagnostics.Temperature{{Layer: "all", Configurational: 3, StandardError: 0.1, Kinetic: none}}},
		"sgld", bayes.Spec{Method: langevin.SGLD{}, Temperature: new(0.0)},
	}
	if notes := o.verdict(); len(notes) > 0 || o.notInEquilibrium() {
		t.Errorf("%q, unsettled: %t", notes, o.notInEquilibrium())
	}
}

// Trajectories that diverged are reported.
func TestDivergedIsSaid(t *testing.T) {
	for want, share := range map[string]diagnostics.Number{"": 0, "nuts: 2.5 % of the trajectories diverged": 0.025} {
		o := observed{&diagnostics.Report{Acceptance: 0.8, Diverged: share}, "nuts", bayes.Spec{Method: bayes.NUTS{}, Temperature: new(1.0)}}
		if notes := strings.Join(o.verdict(), "\n"); strings.Contains(notes, "diverged") != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("%v: %q, want %q", share, notes, want)
		}
	}
}

// Chains whose loss is far above the others' are named.
func TestOutliersAreNamed(t *testing.T) {
	o := observed{&diagnostics.Report{Losses: [][]float64{{0.01}, {1.92}, {0.02}}}, "sghmc", bayes.Spec{FirstChain: 3, Temperature: new(1.0)}}
	want := "sghmc: chain 4 spoils the average: its loss while sampling is 1.92, and the median over the chains is 0.02."
	if notes := strings.Join(o.verdict(), "\n"); !strings.Contains(notes, want) {
		t.Errorf("%q, want %q", notes, want)
	}
}

// Large errors are written without exponents.
func TestWithError(t *testing.T) {
	for want, given := range map[string][2]diagnostics.Number{
		"1.040 ± 0.003": {1.04, 0.003}, "1 ± 9": {1, 9.4}, "65 ± 10": {64.7, 9.6}, "100 ± 100": {64.7, 123}, "2": {2, diagnostics.Number(math.NaN())},
	} {
		if got := withError(diagnostics.Temperature{Configurational: given[0], StandardError: given[1]}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Runs of other networks have a table of their own, and one of many layers a row for each.
func TestTemperaturesOfOtherNetworks(t *testing.T) {
	of := func(layers ...string) *bayes.Run {
		none := diagnostics.Number(math.NaN())
		d := &diagnostics.Report{Samples: 2, Made: 9, Watched: "w", LossRHat: none, WeightRHat: none, Acceptance: none, Swaps: none}
		for i, layer := range append([]string{"all"}, layers...) {
			d.Temperatures = append(d.Temperatures, diagnostics.Temperature{
				Layer: layer, Weights: 10, Configurational: diagnostics.Number(0.5 + float64(i)/10), StandardError: 0.01, Kinetic: 1, Drift: none, GradientNoise: 0.25,
			})
		}
		return runOf(t, bayes.Spec{Method: langevin.SGHMC{Friction: 0.1}}, d)
	}
	s, err := Summarize([]string{"a", "b", "deep", "c", "d"}, []*bayes.Run{
		of("linear1"), of("linear1"), of("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"), of("linear1"), of("conv1", "linear1"),
	}, make([]*diagnostics.Mixing, 5))
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(textOf(t, s), "\n\n")
	want := `temperature  requested     measured      linear1
------------------------------------------------
a                    1  0.50 ± 0.01  0.60 ± 0.01
  kinetic                         1            1
  noise                       +0.25        +0.25
b                    1  0.50 ± 0.01  0.60 ± 0.01
  kinetic                         1            1
  noise                       +0.25        +0.25

deep  temperature, of 1  kinetic  noise
---------------------------------------
all         0.50 ± 0.01        1  +0.25
c1          0.60 ± 0.01        1  +0.25
c2          0.70 ± 0.01        1  +0.25
c3          0.80 ± 0.01        1  +0.25
c4          0.90 ± 0.01        1  +0.25
c5          1.00 ± 0.01        1  +0.25
c6          1.10 ± 0.01        1  +0.25
c7          1.20 ± 0.01        1  +0.25
c8          1.30 ± 0.01        1  +0.25
c9          1.40 ± 0.01        1  +0.25

temperature  requested     measured      linear1
------------------------------------------------
c                    1  0.50 ± 0.01  0.60 ± 0.01
  kinetic                         1            1
  noise                       +0.25        +0.25

temperature  requested     measured        conv1      linear1
-------------------------------------------------------------
d                    1  0.50 ± 0.01  0.60 ± 0.01  0.70 ± 0.01
  kinetic                         1            1            1
  noise                       +0.25        +0.25        +0.25
`
	if got, _, _ := strings.Cut(got, "\nMeasured"); got != want {
		t.Error(cmp.Diff(want, got))
	}
}
