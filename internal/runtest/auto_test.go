package runtest

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// automatic fits by Auto, and returns the run and the remarks.
func automatic(t *testing.T, spec bayes.Spec, examples int, dir string, options ...bayes.Option) (run *bayes.Run, remarks string) {
	t.Helper()
	spec.Method, spec.Network = bayes.Auto{}, "mlp-5"
	run, err := bayes.Fit(t.Context(), spec, trainOn(letters.Noisy(t, examples)), dir,
		append(options, bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark + "\n" }))...)
	must(t, err)
	return run, remarks
}

// TestAutoOnFewExamples: Auto chooses MCLMC on all examples, with the same result as if it had
// been requested, with 4 chains, 100 samples and a prior by fan-in.
func TestAutoOnFewExamples(t *testing.T) {
	dir, spec := t.TempDir(), bayes.Spec{Epochs: 1500, Seed: 3, Temperature: new(3e-3)}
	run, remarks := automatic(t, spec, 40, filepath.Join(dir, "auto"), with(t, 2))
	spec.Chains, spec.Samples, spec.Prior = 4, 25, new(langevin.FanIn(2))
	spec.Method, spec.Network = mcmc.MCLMC{Friction: 0.01, EnergyVariance: 2e-5, MaxVariance: 0.5}, "mlp-5"
	asked, err := bayes.Fit(t.Context(), spec, trainOn(letters.Noisy(t, 40)), filepath.Join(dir, "asked"), with(t, 2))
	must(t, err)
	same(t, "samples", contents(t, filepath.Join(asked.Dir(), rundir.SamplesDir)), contents(t, filepath.Join(run.Dir(), rundir.SamplesDir)))
	if got := run.Manifest().Spec; got.Method != spec.Method || got.Batch != 40 {
		t.Errorf("the manifest has %s with batch %d", bayes.MethodText(got.Method), got.Batch)
	}
	if !strings.Contains(remarks, "chosen: mclmc:friction=0.01,energy-variance=2e-05,max-variance=0.5 with all 40 examples at each step, 1500 steps; it finds") {
		t.Errorf("remarks are %q", remarks)
	}
}

// ticking is a clock that advances by step at each reading. Auto reads it after every second of six
// steps on up to 2000 images, so that a pass over n images takes step n/2000/2.
func ticking(step time.Duration) bayes.Option {
	now := time.Unix(0, 0)
	return bayes.WithClock(func() time.Time {
		now = now.Add(step)
		return now
	})
}

// TestAutoKeepsItsBudget: it takes all data, then a sixth of them, then small minibatches, as steps
// take longer. 1500 passes of 0.4 s are the default of 10 minutes.
func TestAutoKeepsItsBudget(t *testing.T) {
	const examples = 1200
	for _, c := range []struct {
		step          time.Duration // twice the time of a pass
		budget        string
		method        string
		batch, epochs int
		lost          string
	}{
		{60 * time.Millisecond, "", "mclmc", examples, 10_000, ""},
		{799 * time.Millisecond, "", "mclmc", examples, 1500, ""},
		{801 * time.Millisecond, "", "sgnht", examples / 6, 1400, "1500 steps with 1200 of 1200 examples each, which would take 10 min"},
		{801 * time.Millisecond, "20m", "mclmc", examples, 2900, ""},
		{time.Minute, "", "sgnht", 100, 84, "and 4000 steps with 200 of 1200 examples each, which would take 5.6 h"},
		{time.Hour, "", "sgnht", 100, 84, "and 4000 steps with 200 of 1200 examples each"},
	} {
		spec := bayes.Spec{Network: "mlp-5", Method: bayes.Auto{}, Temperature: new(3e-3)}
		if c.budget != "" {
			must(t, spec.Set("budget", c.budget))
		}
		remarks, all := "", ""
		total, err := bayes.Try(t.Context(), spec, letters.Noisy(t, examples), 2, with(t, 1), ticking(c.step),
			bayes.WithObserver(func(e bayes.Event) {
				all += e.Remark
				if strings.HasPrefix(e.Remark, "chosen: ") {
					remarks = e.Remark
				}
			}))
		must(t, err)
		if want := c.epochs * examples / c.batch; total != want || !strings.HasPrefix(remarks, "chosen: "+c.method) ||
			strings.Contains(remarks, "lost by the budget") != (c.lost != "") || !strings.Contains(remarks, c.lost) {
			t.Errorf("passes of %v: %d steps, want %d; remarks %q", c.step/2, total, want, all)
		}
	}
}

// TestAutoOnManyExamples: SGNHT at a rate that follows from the noise of a pilot, the same for all
// parts of a run, which is resumed after it was stopped.
func TestAutoOnManyExamples(t *testing.T) {
	const examples = 4200
	dir, spec := t.TempDir(), bayes.Spec{Epochs: 40, BurnIn: new(12), Samples: 4, Chains: 2, Seed: 3, Temperature: new(3e-3)}
	spec.Prior = new(langevin.Gaussian(0.316))
	run, remarks := automatic(t, spec, examples, filepath.Join(dir, "whole"), with(t, 2))
	chosen := run.Manifest().Spec
	if _, ok := chosen.Method.(langevin.SGNHT); !ok || !strings.Contains(remarks, "chosen: sgnht:friction=0.05,") {
		t.Fatalf("the manifest has %s, remarks are %q", bayes.MethodText(chosen.Method), remarks)
	}
	d, err := run.Diagnostics()
	must(t, err)
	most := 0.0
	for _, layer := range d.Temperatures[1:] {
		most = math.Max(most, float64(layer.GradientNoise))
	}
	const noise = 4.0 // the noise that auto's pilot run aims at, in units of the friction's
	if !(most > noise/8 && most < 2*noise) {
		t.Errorf("at the rate %v the noise is %.3g times the friction's in the end, want about %v", chosen.Schedule, most, noise)
	}

	of := spec
	of.FirstChain, of.Chains = 1, 1
	part, _ := automatic(t, of, examples, filepath.Join(dir, "part"), with(t, 1))
	if got := part.Manifest().Spec.Schedule; got != chosen.Schedule {
		t.Errorf("a part of the run has %v, the whole one %v", got, chosen.Schedule)
	}
	total, err := bayes.Try(t.Context(), bayes.Spec{Network: "mlp-5", Method: bayes.Auto{}, Epochs: 40, Seed: 3}, letters.Noisy(t, examples), 2, with(t, 1))
	if err != nil || total != 1680 {
		t.Errorf("an estimate is of %d steps, error %v", total, err)
	}

	ctx, stop := stopAt(400)
	again := spec
	again.Network, again.Method = "mlp-5", bayes.Auto{}
	stopped := filepath.Join(dir, "stopped")
	if _, err := bayes.Fit(ctx, again, trainOn(letters.Noisy(t, examples)), stopped, with(t, 2), stop); err == nil {
		t.Fatal("the run did not stop")
	}
	resumed, err := bayes.Resume(t.Context(), stopped, trainOn(letters.Noisy(t, examples)), with(t, 2))
	must(t, err)
	same(t, "samples", contents(t, filepath.Join(run.Dir(), rundir.SamplesDir)), contents(t, filepath.Join(resumed.Dir(), rundir.SamplesDir)))
}

// TestAutoIsAtMostTwiceAsFast as its pilot: if minibatches have hardly any noise, the rate is
// bounded by twice the pilot's, which is 0.005 for this network.
func TestAutoIsAtMostTwiceAsFast(t *testing.T) {
	remarks := ""
	spec := bayes.Spec{Network: "mlp-5", Method: bayes.Auto{}, Epochs: 250, Batch: 20, Temperature: new(1e4)}
	_, err := bayes.Try(t.Context(), spec, letters.Noisy(t, 80), 2, with(t, 1), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark }))
	must(t, err)
	if !strings.Contains(remarks, "at the rate 0.01, ") {
		t.Errorf("remarks are %q, want twice the rate 0.005", remarks)
	}
}

// TestAutoRefuses settings that would have no effect, and data for which no rate is small enough.
func TestAutoRefuses(t *testing.T) {
	for want, spec := range map[string]bayes.Spec{
		"schedule does not apply to auto":     {Schedule: optimizers.Constant{Rate: 1}},
		"cycles applies to":                   {Cycles: 2},
		"temperature must be positive, got 0": {Temperature: new(0.0)},
		"burn-in-steps applies to":            {BurnInSteps: 3},
		"budget must be positive, got -1s":    {Budget: -time.Second},
		"only one of them may be given":       {Budget: time.Second, Epochs: 2000},
		"first-chain needs epochs":            {FirstChain: 1},
	} {
		spec.Method = bayes.Auto{}
		_, err := spec.Resolve()
		wantInvalid(t, want, err, want)
	}
	data := squares(t, 2100, 4, 1)
	data.Std[0] = 1e-30
	_, err := bayes.Fit(t.Context(), bayes.Spec{Network: "mlp-5", Method: bayes.Auto{}, Batch: 100, Epochs: 60}, trainOn(data),
		filepath.Join(t.TempDir(), "run"), with(t, 1))
	wantError(t, "numbers without bounds", err, "auto", "computed a NaN or an infinity")
}

// What is wrong is found before the pilot.
func TestAutoRefusesBeforeItsPilot(t *testing.T) {
	data, dir := squares(t, 200, 4, 1), t.TempDir()
	full := filepath.Join(dir, "full")
	must(t, os.MkdirAll(filepath.Join(full, "other"), 0o755))
	other := *squares(t, 40, 4, 2)
	other.Height, other.Width = side/2, 2*side
	for want, c := range map[string]struct {
		change func(s *bayes.Spec, splits *datasets.Splits)
		dir    string
	}{
		"full is not empty":               {func(*bayes.Spec, *datasets.Splits) {}, full},
		`validation: pollen: squares has`: {func(_ *bayes.Spec, splits *datasets.Splits) { splits.Validation = squares(t, 40, 5, 1) }, ""},
		"squares has images of 1x6x24":    {func(_ *bayes.Spec, splits *datasets.Splits) { splits.Test = &other }, ""},
		"burn-in is 90 of 80 epochs":      {func(s *bayes.Spec, _ *datasets.Splits) { s.BurnIn = new(90) }, ""},
		"5000 samples in the 1000 steps":  {func(s *bayes.Spec, _ *datasets.Splits) { s.Samples = 5000 }, ""},
		"epochs must be at least 50, for 1000 steps in minibatches of 10 of 200 examples, got 20": {
			func(s *bayes.Spec, _ *datasets.Splits) { s.Epochs = 20 }, ""},
		"augment: rotation must be 0 to 180 degrees, got 400": {func(s *bayes.Spec, _ *datasets.Splits) { s.Augment = &bayes.Augment{Rotation: 400} }, ""},
		"no noise to choose a rate by: use a smaller batch": {func(s *bayes.Spec, _ *datasets.Splits) {
			s.Batch, s.Subset, s.Augment = 80, 80, &bayes.Augment{Flip: true}
		}, ""},
	} {
		spec, splits := bayes.Spec{Network: "mlp-5", Method: bayes.Auto{}, Batch: 10, Epochs: 80}, trainOn(data)
		c.change(&spec, splits)
		remarks := ""
		_, err := bayes.Fit(t.Context(), spec, splits, cmp.Or(c.dir, filepath.Join(dir, "run")), with(t, 1),
			bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark }))
		wantError(t, want, err, want)
		if remarks != "" {
			t.Errorf("%s: before that it remarked %q", want, remarks)
		}
	}
}

// MCLMC does not allow augmentation: Auto then samples even few examples in minibatches.
func TestAutoWithAugmentation(t *testing.T) {
	spec := bayes.Spec{Epochs: 250, BurnIn: new(10), Samples: 2, Augment: &bayes.Augment{Flip: true}, Batch: 20}
	run, remarks := automatic(t, spec, 80, filepath.Join(t.TempDir(), "run"), with(t, 1))
	if got := run.Manifest().Spec; !strings.Contains(remarks, "chosen: sgnht:") || got.Batch != 20 || !got.Augment.Flip {
		t.Errorf("remarks are %q, the manifest has %v", remarks, got.Texts())
	}
}
