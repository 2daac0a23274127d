package diagnostics_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/langevin"
)

// near is equality to within a relative 1e-12.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-12*math.Abs(want) }

func TestPublishedSettings(t *testing.T) {
	want := []struct {
		code                   string
		step, temperature, std float64 // deviation 0: no weight decay
	}{
		{"pSGLD's authors (2016)", 5e-4 / 60000, 1.0 / 60000, 1},
		{"cSG-MCMC's authors (2020)", 1e-5, 2e-5, 0.2},
		{"henripal/sgld to 2018", 5e-4 / 60000, 60000 * 5e-4 * 5e-4 / 2, 0},
		{"henripal/sgld from 2019", 5e-4 / 60000, 30000, 0},
		{"torch-uncertainty (2026)", 1e-2 / 60000, 6, math.Sqrt(1 / 0.6)},
		{"posteriors (2025)", 1e-3 / 60000, 1, 1},
		{"bjlkeng/sandbox (2024)", 0.005, 1, 0},
	}
	published := diagnostics.PublishedSettings()
	if len(published) != len(want) {
		t.Fatalf("%d settings, want %d", len(published), len(want))
	}
	for i, p := range published {
		w := want[i]
		if err := p.Settings.Validate(); err != nil {
			t.Errorf("%s: %v", p.Code, err)
		}
		if p.Code != w.code || !strings.HasPrefix(p.Source, "github.com/") {
			t.Errorf("setting %d is %q, source %q, want %q", i, p.Code, p.Source, w.code)
		}
		if got := p.Settings.StepSize(); !near(got, w.step) {
			t.Errorf("%s: step size is %v, want %v", p.Code, got, w.step)
		}
		if got := p.Settings.Temperature(); !near(got, w.temperature) {
			t.Errorf("%s: temperature is %v, want %v", p.Code, got, w.temperature)
		}
		prior := p.Settings.Prior()
		switch {
		case w.std == 0 && prior != langevin.Flat():
			t.Errorf("%s: prior is %v, want flat", p.Code, prior)
		case w.std > 0 && (prior.Kind != langevin.GaussianPrior || !near(prior.Scale, w.std)):
			t.Errorf("%s: prior is %v, want gaussian(%v)", p.Code, prior, w.std)
		}
	}
}

// drift is how far a program moves theta down, on examples whose loss is theta^2/2 each: the table
// of conventions once more.
func drift(a diagnostics.Audit, theta float64) float64 {
	gradient := 0.0
	switch a.Convention {
	case diagnostics.MeanLoss:
		gradient = theta
	case diagnostics.SumLoss:
		gradient = float64(a.DataSize) * theta
	case diagnostics.BatchSum:
		gradient = float64(a.BatchSize) * theta
	case diagnostics.WellingTeh:
		gradient = float64(a.DataSize) * theta
		return a.Rate / 2 * (gradient + a.WeightDecay*theta)
	}
	return a.Rate * (gradient + a.WeightDecay*theta)
}

// A program must do what the audit computes: on a quadratic, the stationary variance of
// theta <- (1 - c) theta + noise is noise^2/(1 - (1 - c)^2), and by temperature, step size and
// prior it is T/(k (1 - hk/2)), k = N + 1/s^2.
func TestAuditForetellsTheStationaryVariance(t *testing.T) {
	for _, a := range []diagnostics.Audit{
		{Rate: 0.3, Noise: 0.2, DataSize: 50, Convention: diagnostics.MeanLoss},
		{Rate: 0.3, Noise: 0.2, DataSize: 50, Convention: diagnostics.MeanLoss, WeightDecay: 0.4},
		{Rate: 0.003, Noise: 0.1, DataSize: 70, Convention: diagnostics.SumLoss, WeightDecay: 31},
		{Rate: 0.01, Noise: 0.7, DataSize: 70, BatchSize: 9, Convention: diagnostics.BatchSum, WeightDecay: 2.5},
		{Rate: 0.004, Noise: 1.5, DataSize: 257, Convention: diagnostics.WellingTeh, WeightDecay: 33},
	} {
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		c := drift(a, 1)
		want := a.Noise * a.Noise / (1 - (1-c)*(1-c))
		k := float64(a.DataSize)
		if prior := a.Prior(); prior.Kind == langevin.GaussianPrior {
			k += 1 / (prior.Scale * prior.Scale)
		}
		if got := a.Temperature() / (k * (1 - a.StepSize()*k/2)); !(math.Abs(got/want-1) < 1e-12) {
			t.Errorf("%+v: stationary variance is %v, foretold %v", a, want, got)
		}
		right := a
		right.Noise = a.NoiseFor(0.3)
		if got := right.Temperature(); !near(got, 0.3) {
			t.Errorf("%+v: noise for the temperature 0.3 is %v, whose temperature is %v", a, right.Noise, got)
		}
	}
}

func TestStepConventions(t *testing.T) {
	want := []diagnostics.StepConvention{"mean-loss", "sum-loss", "batch-sum", "welling-teh"}
	if diff := cmp.Diff(want, diagnostics.StepConventions()); diff != "" {
		t.Error(diff)
	}
}

func TestAuditRefuses(t *testing.T) {
	good := diagnostics.Audit{Rate: 0.1, Noise: 0.01, DataSize: 100, BatchSize: 10, Convention: diagnostics.BatchSum, WeightDecay: 0.1}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	cold := good
	cold.Noise, cold.WeightDecay = 0, 0
	if err := cold.Validate(); err != nil {
		t.Errorf("no noise and no weight decay: %v", err)
	}
	for want, change := range map[string]func(*diagnostics.Audit){
		`the convention must be one of ["mean-loss" "sum-loss" "batch-sum" "welling-teh"], got ""`: func(a *diagnostics.Audit) { a.Convention = "" },
		"Rate must be positive, got 0":                                        func(a *diagnostics.Audit) { a.Rate = 0 },
		"Rate must be positive, got NaN":                                      func(a *diagnostics.Audit) { a.Rate = math.NaN() },
		"Rate must be positive, got +Inf":                                     func(a *diagnostics.Audit) { a.Rate = math.Inf(1) },
		"Noise must be finite and at least 0, got -1":                         func(a *diagnostics.Audit) { a.Noise = -1 },
		"Noise must be finite and at least 0, got NaN":                        func(a *diagnostics.Audit) { a.Noise = math.NaN() },
		"WeightDecay must be finite and at least 0, got -0.1":                 func(a *diagnostics.Audit) { a.WeightDecay = -0.1 },
		"WeightDecay must be finite and at least 0, got +Inf":                 func(a *diagnostics.Audit) { a.WeightDecay = math.Inf(1) },
		"DataSize must be at least 1, got 0":                                  func(a *diagnostics.Audit) { a.DataSize = 0 },
		`BatchSize must be 0 with the convention "mean-loss"`:                 func(a *diagnostics.Audit) { a.Convention = diagnostics.MeanLoss },
		`BatchSize must be 1 to 100 with the convention "batch-sum", got 0`:   func(a *diagnostics.Audit) { a.BatchSize = 0 },
		`BatchSize must be 1 to 100 with the convention "batch-sum", got 101`: func(a *diagnostics.Audit) { a.BatchSize = 101 },
		"the temperature must be finite, got +Inf":                            func(a *diagnostics.Audit) { a.Rate, a.Noise = 1e-200, 1e150 },
	} {
		a := good
		change(&a)
		err := a.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "diagnostics: audit: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error is %v, want %q", a, err, want)
		}
	}
}
