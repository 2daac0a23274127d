package runtest

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// R-hat covers the sampling phase: burn-in, and the exploring steps of cycles, do not count.
func TestRHatIsOfTheSamplingPhase(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	for _, c := range []struct {
		cycles  int
		samples func(step int) bool
	}{
		{0, func(step int) bool { return step >= 60 }},
		{2, func(step int) bool { return step%80 >= 60 }},
	} {
		spec := bayes.Spec{Network: "mlp-3", Method: methodOf(t, "sghmc"), Batch: 10, Epochs: 16, BurnIn: new(6), Samples: 4, Cycles: c.cycles}
		spec.Schedule = optimizers.Constant{Rate: 0.01}
		d, err := fit(t, spec, data).Diagnostics()
		must(t, err)
		var phase []float64
		for step, v := range d.Trace {
			if c.samples(step) {
				phase = append(phase, v)
			}
		}
		want, err := diagnostics.SplitRHat([][]float64{phase})
		must(t, err)
		all, err := diagnostics.SplitRHat([][]float64{d.Trace})
		must(t, err)
		if got := float64(d.WeightRHat); len(d.Trace) != 160 || got != want || math.Abs(want-all) < 0.01 {
			t.Errorf("%d cycles: R-hat %v over %d steps, want %v, and not all steps' %v", c.cycles, got, len(d.Trace), want, all)
		}
		if !(d.LossRHat > 0.9) || d.From != 0 || d.Made != 160 || d.Samples != 4 || d.Watched == "" {
			t.Errorf("%d cycles: diagnostics from %d to %d of %d samples, R-hat of the loss %v", c.cycles, d.From, d.Made, d.Samples, d.LossRHat)
		}
	}
}

// Velocities have the requested temperature, which the noise sets. With a Metropolis test,
// configurations have it, too.
func TestTemperatureIsTheRequestedOne(t *testing.T) {
	data := trainOn(squares(t, 60, 4, 1))
	for _, requested := range []float64{0.25, 4} {
		for _, c := range []struct {
			method    string
			kinetic   bool
			tolerance float64
		}{{"sghmc:0.2", true, 0.05}, {"baoab:0.2", true, 0.05}, {"sgnht:0.2", true, 0.05}, {"hmc:leapfrog-steps=5", false, 0.15}, {"nuts:max-depth=5", false, 0.15}} {
			spec := bayes.Spec{Network: "mlp-3", Method: methodOf(t, c.method), Batch: 60, Epochs: 400, BurnIn: new(200), Samples: 1,
				Temperature: &requested, Prior: new(langevin.Gaussian(0.1))}
			if c.kinetic {
				spec.Schedule = optimizers.Constant{Rate: 0.01}
			}
			last := math.NaN()
			run := fit(t, spec, data, bayes.WithObserver(func(e bayes.Event) { last = e.Temperature }))
			d, err := run.Diagnostics()
			must(t, err)
			if d.Temperatures[0].Layer != "all" || len(d.Temperatures) != 3 || math.IsNaN(last) {
				t.Errorf("%s: temperatures %+v, the last %v", c.method, d.Temperatures, last)
			}
			got := float64(d.Temperatures[0].Configurational)
			if c.kinetic {
				got = float64(d.Temperatures[0].Kinetic)
			}
			if !(math.Abs(got/requested-1) < c.tolerance) {
				t.Errorf("%s: temperature %v, requested %v", c.method, got, requested)
			}
			if lines := readFile(t, run.Dir(), rundir.MetricsFile); !strings.Contains(lines, `"requestedTemperature":`+text(requested)) {
				t.Errorf("%s: no requested temperature %v in the metrics", c.method, requested)
			}
			if !c.kinetic && !(d.Acceptance > 0.5 && d.Acceptance <= 1) {
				t.Errorf("%s: acceptance %v", c.method, d.Acceptance)
			}
		}
	}
}

func text(v float64) string {
	content, _ := json.Marshal(v)
	return string(content)
}

// At temperature 0 a sampler on all data is gradient descent on the potential: the loss falls at
// each step.
func TestTemperatureZero(t *testing.T) {
	data := trainOn(squares(t, 60, 4, 1))
	for _, c := range []struct{ temperature, falls float64 }{{0, 1}, {100, 0.9}} {
		var losses []float64
		spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 60, Epochs: 50, BurnIn: new(0), Samples: 50, Temperature: &c.temperature}
		fit(t, spec, data, bayes.WithObserver(func(e bayes.Event) {
			if e.Task == "fit" {
				losses = append(losses, e.Loss)
			}
		}))
		falls := 0.0
		for i := range losses[1:] {
			if losses[i+1] < losses[i] {
				falls += 1. / 49
			}
		}
		if len(losses) != 50 || (falls > 0.99) != (c.falls == 1) {
			t.Errorf("at the temperature %v the loss falls in a fraction of %v of %d steps", c.temperature, falls, len(losses))
		}
	}
}

// Samples of cycles have equal weights and come from the end of each cycle, unless weights by
// step size are requested. Without cycles, weights are by step size.
func TestWeightsOfSamples(t *testing.T) {
	for _, c := range []struct {
		cycles  int
		weights bayes.Weighting
		want    func(step int) float64
		after   int // the burn-in of 10 epochs, or of a cycle's 5, in steps
	}{
		{2, "", func(int) float64 { return 1 }, 40},
		{2, bayes.StepSize, func(step int) float64 { return 0.01 * (math.Cos(math.Pi*float64((step-1)%50)/50) + 1) / 100 }, 40},
		{0, "", func(int) float64 { return 0.02 / 100 }, 40},
		{0, bayes.Equal, func(int) float64 { return 1 }, 40},
	} {
		spec := bayes.Spec{Network: "mlp-3", Method: methodOf(t, "sgnht"), Batch: 10, Epochs: 10, Thinning: 2, Cycles: c.cycles, Weights: c.weights}
		spec.Schedule = optimizers.Constant{Rate: 0.02}
		if c.cycles > 0 {
			spec.Schedule = optimizers.Cyclical{Initial: 0.02, Cycles: c.cycles}
		}
		run := fit(t, spec, trainOn(squares(t, 100, 4, 1)))
		files, err := run.Samples()
		must(t, err)
		if want := map[int]int{0: 30, 2: 10}[c.cycles]; len(files) != want {
			t.Errorf("%d cycles: %d samples, want %d", c.cycles, len(files), want)
		}
		for _, path := range files {
			sample, err := samples.ReadSample(path)
			must(t, err)
			if within := sample.Step % 50; c.cycles > 0 && within != 0 && within <= c.after {
				t.Errorf("%d cycles: a sample after step %d", c.cycles, sample.Step)
			}
			if want := c.want(sample.Step); !(math.Abs(sample.Weight/want-1) < 1e-6) {
				t.Errorf("%d cycles, weights %q: after step %d a sample weighs %v, want %v", c.cycles, c.weights, sample.Step, sample.Weight, want)
			}
		}
	}
}

// A run that learns nothing has a remark on that.
func TestRemarkThatNothingIsLearnt(t *testing.T) {
	for rate, want := range map[float64]bool{1e-9: true, 0.01: false} {
		var remarks []string
		spec := bayes.Spec{Network: "mlp-8", Method: methodOf(t, "adam"), Schedule: optimizers.Constant{Rate: rate}, Batch: 10, Epochs: 20}
		fit(t, spec, trainOn(squares(t, 100, 4, 1)), bayes.WithObserver(func(e bayes.Event) { remarks = append(remarks, e.Remark) }))
		if got := strings.Contains(strings.Join(remarks, ""), "guessing among the 4 classes by their frequencies, 1.386"); got != want {
			t.Errorf("the rate %v: remarks %q", rate, remarks)
		}
	}
}

// Numbers that are not finite are null in JSON, and read back.
func TestNumber(t *testing.T) {
	content, err := json.Marshal([]diagnostics.Number{1.5, diagnostics.Number(math.NaN()), diagnostics.Number(math.Inf(-1))})
	if err != nil || string(content) != "[1.5,null,null]" {
		t.Errorf("%s (%v)", content, err)
	}
	var read []diagnostics.Number
	must(t, json.Unmarshal(content, &read))
	if read[0] != 1.5 || !math.IsNaN(float64(read[1])) {
		t.Errorf("read back %v", read)
	}
	run := fit(t, bayes.Spec{Network: "mlp-3", Method: methodOf(t, "sgd"), Batch: 20, Epochs: 2}, trainOn(squares(t, 100, 4, 1)))
	d, err := run.Diagnostics()
	if err != nil || !math.IsNaN(float64(d.LossRHat)) || !math.IsNaN(float64(d.Temperatures[0].Configurational)) || len(d.Trace) != 10 {
		t.Errorf("diagnostics of an optimizer: %+v (%v)", d, err)
	}
}
