package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

func TestResolveFillsWhatApplies(t *testing.T) {
	for _, test := range []struct {
		sampler string
		want    Config
	}{
		{"sgld", Config{Schedule: "constant:0.2", Prior: new("gaussian:0.316"), Temperature: new(1.0),
			BurnIn: new(3), Samples: new(10)}},
		{"psgld", Config{Schedule: "constant:0.002", Prior: new("gaussian:0.316"), Temperature: new(1.0),
			BurnIn: new(3), Samples: new(10),
			Gamma: new("frozen"), Alpha: new(0.99), Lambda: new(1e-5)}},
		{"sghmc:0.2,0.1", Config{Schedule: "constant:0.02", Prior: new("gaussian:0.316"), Temperature: new(1.0),
			BurnIn: new(3), Samples: new(10)}},
		{"swag", Config{Schedule: "constant:0.05", Prior: new("gaussian:0.316"), BurnIn: new(3), Samples: new(10)}},
		{"bbb:0.1", Config{Schedule: "constant:0.001", Prior: new("gaussian:0.316"), Samples: new(10)}},
		{"mc-dropout", Config{Schedule: "cosine:0.1,0", Prior: new("gaussian:0.316"), Samples: new(10)}},
		{"momentum:0.95", Config{Schedule: "constant:0.01"}},
		{"adadelta", Config{}},
	} {
		given := defaultConfig()
		given.Sampler = test.sampler
		got, err := given.resolve()
		if err != nil {
			t.Errorf("%s: %v", test.sampler, err)
			continue
		}
		want := defaultConfig()
		want.Sampler, want.Schedule, want.Prior, want.Temperature = test.sampler, test.want.Schedule, test.want.Prior, test.want.Temperature
		want.BurnIn, want.Samples = test.want.BurnIn, test.want.Samples
		want.Gamma, want.Alpha, want.Lambda = test.want.Gamma, test.want.Alpha, test.want.Lambda
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", test.sampler, diff)
		}
		again, err := got.resolve()
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("%s: resolved again: %s (%v)", test.sampler, diff, err)
		}
	}
}

// Every rule that has a learning rate has a default for it, one that can be read.
func TestDefaultSchedules(t *testing.T) {
	for _, name := range slices.Concat(samplerNames(), approximationNames(), optimizers.Names()) {
		config := defaultConfig()
		config.Sampler, config.Chains, config.Epochs = name, 2, 80
		resolved, err := config.resolve()
		if err != nil {
			t.Fatal(err)
		}
		if (resolved.Schedule == "") != (name == "adadelta" || config.isExact()) {
			t.Errorf("%s: schedule %q", name, resolved.Schedule)
		}
	}
}

// Samplers make smaller steps in networks that are wider than the default one; optimizers and approximations do not.
func TestDefaultScheduleByModel(t *testing.T) {
	for _, test := range []struct{ model, sampler, want string }{
		{"lenet-small", "sgld", "constant:0.2"}, {"mnist-64-64-256", "sgld", "constant:0.05"}, {"mlp-400-400", "psgld", "constant:0.0005"},
		{"lenet", "ksgld", "constant:0.0125"}, {"resnet20-frn", "baoab:0.2", "constant:0.005"},
		{"lenet", "sgd", "constant:0.1"}, {"lenet", "swag", "constant:0.05"}, {"lenet", "mc-dropout", "cosine:0.1,0"},
	} {
		config := defaultConfig()
		config.Model, config.Sampler = test.model, test.sampler
		got, err := config.resolve()
		if err != nil || got.Schedule != test.want {
			t.Errorf("%s, %s: %q, want %q (%v)", test.model, test.sampler, got.Schedule, test.want, err)
		}
	}
	config := defaultConfig()
	config.Model, config.Cycles = "lenet", new(2)
	if got, err := config.resolve(); err != nil || got.Schedule != "cyclical:0.1,2" {
		t.Errorf("in cycles: %q, want cyclical:0.1,2 (%v)", got.Schedule, err)
	}
}

func TestSampler(t *testing.T) {
	for text, want := range map[string]langevin.Sampler{
		"sgld": langevin.SGLD{}, "swag:3": langevin.SGLD{}, "sghmc": langevin.SGHMC{Friction: 0.1},
		"sghmc:0.3, 0.2": langevin.SGHMC{Friction: 0.3, NoiseEstimate: 0.2},
		"baoab:2":        langevin.BAOAB{Friction: 2}, "sgnht": langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB},
	} {
		if got, err := (Config{Sampler: text}).sampler(1); err != nil || got != want {
			t.Errorf("%q: %#v (%v), want %#v", text, got, err, want)
		}
	}
	for _, text := range []string{"sgld:1", "sgld:", "psgld:0.9", "sghmc:", "sghmc:x", "sghmc:0.1,0.05,1", "sghmc:2", "baoab:0.1,0.1", "sgnht:0"} {
		config := defaultConfig()
		config.Sampler = text
		if _, err := config.resolve(); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestPlan(t *testing.T) {
	config := defaultConfig()
	config.Batch, config.Epochs, config.BurnIn, config.Samples = 100, 8, new(3), new(10)
	for _, test := range []struct {
		sampler string
		size    int
		want    langevin.Plan
	}{
		{"sgld", 60000, langevin.Plan{Steps: 4800, BurnIn: 1800, Thinning: 300}},
		{"sgld", 333, langevin.Plan{Steps: 26, BurnIn: 9, Thinning: 1}},
		{"swag:5", 60000, langevin.Plan{Steps: 4800, BurnIn: 1800, Thinning: 300}},
		{"bbb", 60000, langevin.Plan{Steps: 4800, BurnIn: 4799, Thinning: 1}},
		{"sgd", 60000, langevin.Plan{Steps: 4800, BurnIn: 4799, Thinning: 1}},
		{"sgd", 100, langevin.Plan{Steps: 8, BurnIn: 7, Thinning: 1}},
	} {
		config.Sampler, config.Schedule = test.sampler, "cosine:0.5,0"
		got, rates, err := config.plan("data", test.size)
		if err != nil || got != test.want {
			t.Errorf("%s on %d: %+v, want %+v (%v)", test.sampler, test.size, got, test.want, err)
			continue
		}
		if len(rates) != got.Steps || rates[0] != 0.5 || rates[len(rates)-1] != 0 {
			t.Errorf("%s on %d: %d rates from %v to %v", test.sampler, test.size, len(rates), rates[0], rates[len(rates)-1])
		}
	}
}

func TestParsePrior(t *testing.T) {
	for text, want := range map[string]langevin.Prior{
		"flat": langevin.Flat(), "gaussian:0.3": langevin.Gaussian(0.3), "laplace:0.1": langevin.Laplace(0.1),
		"scale-mixture:0.25,1,0.1": langevin.ScaleMixture(0.25, 1, 0.1),
		"student-t:3,0.1":          langevin.StudentT(3, 0.1), "student-t:3, 0.1": langevin.StudentT(3, 0.1),
	} {
		if got, err := parsePrior(text); err != nil || got != want {
			t.Errorf("%q: %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "flat:1", "gaussian", "gaussian:", "gaussian:x", "gaussian:0.1,2", "gaussian:0", "gaussian:NaN",
		"scale-mixture:0.5,0.1,1", "scale-mixture:0.5", "laplace:-1", "student-t:3", "student-t:0,1", "cauchy:1"} {
		if p, err := parsePrior(text); err == nil {
			t.Errorf("%q: %v, want an error", text, p)
		}
	}
}

func TestListing(t *testing.T) {
	if got, want := listing("Models", "a", "b"), "\nModels:    a, b"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	long := listing("Models", strings.Repeat("a", 60), strings.Repeat("b", 60))
	if want := "\nModels:    " + strings.Repeat("a", 60) + ",\n" + strings.Repeat(" ", 11) + strings.Repeat("b", 60); long != want {
		t.Errorf("%q, want %q", long, want)
	}
}

// A cyclical run explores and samples in each cycle, at temperatures and rates that go with it.
func TestCyclicalPlan(t *testing.T) {
	config := defaultConfig()
	config.Sampler, config.Cycles = "sghmc", new(4)
	config, err := config.resolve()
	if err != nil {
		t.Fatal(err)
	}
	if config.Schedule != "cyclical:0.04,4" || *config.BurnIn != 1 {
		t.Errorf("schedule %q, burn-in %d, want cyclical:0.04,4 and 1 of 2 epochs", config.Schedule, *config.BurnIn)
	}
	got, rates, err := config.plan("data", 60000)
	if want := (langevin.Plan{Steps: 4800, BurnIn: 600, Thinning: 240, Cycles: 4}); err != nil || got != want {
		t.Errorf("%+v, want %+v (%v)", got, want, err)
	}
	if rates[0] != 0.04 || rates[1200] != 0.04 || !(rates[1199] < 1e-6) {
		t.Errorf("rates %v, %v, %v at the ends of a cycle", rates[0], rates[1199], rates[1200])
	}
}
