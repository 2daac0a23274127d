package runtest

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// softmaxRegression returns the specification of a softmax regression by a method at a
// temperature.
func softmaxRegression(t *testing.T, method string, temperature float64) bayes.Spec {
	return bayes.Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 4}}, Method: methodOf(t, method), Temperature: new(temperature),
		Prior: new(langevin.Gaussian(0.1)), Schedule: optimizers.Constant{Rate: 0.05},
	}
}

// TestTemperatureOfPredictions: with steps on all data predictions have the requested
// temperature; with minibatches theirs is far higher, even if a thermostat controls the
// temperature of the weights.
func TestTemperatureOfPredictions(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	const size, temperature = 200, 0.2
	data := letters.Noisy(t, size)
	of := func(method string, batch, epochs int) *diagnostics.Report {
		spec := softmaxRegression(t, method, temperature)
		spec.Batch, spec.Epochs, spec.Chains, spec.Samples = batch, epochs, 4, 40
		d, err := fit(t, spec, trainOn(data)).Diagnostics()
		must(t, err)
		if d.Predictions == nil {
			t.Fatalf("%s: not measured", method)
		}
		t.Logf("%s, minibatches of %d: %v, by determination %v, of the weights %.3g", method, batch, d.Predictions, d.Determination,
			d.Temperatures[0].Configurational)
		return d
	}
	for _, method := range []string{"sghmc:friction=0.1", "sgnht:friction=0.1,coupling=0.01"} {
		all, heated := of(method, size, 6000), of(method, 5, 320)
		for _, right := range []*diagnostics.Measured{all.Predictions, all.Determination} {
			if off := math.Abs(float64(right.Value) - temperature); !(off < 4*float64(right.StandardError)) || !(right.StandardError < 0.25*temperature) {
				t.Errorf("%s: with all data it is %.3g ± %.2g, want %v", method, right.Value, right.StandardError, temperature)
			}
		}
		// The steepest directions are the hottest.
		if d := heated.Determination; !(d.Value > temperature+2*d.StandardError) || !(d.Value < heated.Predictions.Value) {
			t.Errorf("%s: with minibatches it is %v by determination and %v by curvature", method, d, heated.Predictions)
		}
		if p := heated.Predictions; !(p.Value > 2*temperature) || !(float64(p.Value) > temperature+2*float64(p.StandardError)) {
			t.Errorf("%s: with minibatches it is %.3g ± %.2g", method, p.Value, p.StandardError)
		}
		if of := float64(heated.Temperatures[0].Configurational); method[:5] != "sghmc" && !(math.Abs(of/temperature-1) < 0.02) {
			t.Errorf("%s: the weights' is %.3g, want %v", method, of, temperature)
		}
	}
	brief := softmaxRegression(t, "sghmc", temperature)
	brief.Batch, brief.Epochs = 10, 20
	d, err := fit(t, brief, trainOn(data)).Diagnostics()
	must(t, err)
	if d.Predictions != nil {
		t.Error("of a run of 20 passes over the data it is measured, in 12: more than 15 %")
	}
}

// TestDamagedSampleHasNoTemperature: a sample that is damaged before the run ends is left out,
// with a remark.
func TestDamagedSampleHasNoTemperature(t *testing.T) {
	data := letters.Noisy(t, 60)
	spec := softmaxRegression(t, "sghmc", 0.2)
	spec.Batch, spec.Epochs, spec.Samples = 20, 200, 10
	dir := filepath.Join(t.TempDir(), "run")
	remarks, damaged := "", ""
	run, err := bayes.Fit(t.Context(), spec, trainOn(data), dir, with(t, 1), bayes.WithObserver(func(e bayes.Event) {
		remarks += e.Remark
		if files, _ := os.ReadDir(filepath.Join(dir, rundir.SamplesDir)); e.Done > 500 && damaged == "" {
			damaged = files[1].Name()
			must(t, os.Truncate(filepath.Join(dir, rundir.SamplesDir, damaged), 10))
		}
	}))
	must(t, err)
	d, err := run.Diagnostics()
	must(t, err)
	if d.Predictions == nil || damaged == "" || !strings.Contains(remarks, damaged) || !strings.Contains(remarks, "left out of the temperature of predictions") {
		t.Errorf("measured %v, remarks %q", d.Predictions, remarks)
	}
}

// TestSymmetricRemark: a run whose epochs resonate with the steepest directions has a remark; one
// of small steps, of shuffled minibatches and without momentum has none.
func TestSymmetricRemark(t *testing.T) {
	data := letters.Noisy(t, 200)
	remarks := func(method, order string, rate float64) (all string) {
		spec := softmaxRegression(t, method, 1)
		must(t, spec.Set("order", order))
		spec.Schedule, spec.Batch, spec.Epochs, spec.Samples = optimizers.Constant{Rate: rate}, 20, 120, 4
		fit(t, spec, trainOn(data), bayes.WithObserver(func(e bayes.Event) { all += e.Remark }))
		return all
	}
	for _, c := range []struct {
		method, order string
		rate          float64
		want          bool
	}{{"baoab", "symmetric", 3e-2, true}, {"baoab", "symmetric", 1e-3, false}, {"baoab", "shuffled", 3e-2, false}, {"sgld", "symmetric", 3e-2, false}} {
		got := remarks(c.method, c.order, c.rate)
		if strings.Contains(got, "symmetric minibatches heat this run: m sqrt(lambda h) is ") != c.want {
			t.Errorf("%+v: remarks are %q", c, got)
		}
	}
}
