package langevin_test

import (
	"math"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

func TestPosteriorValidate(t *testing.T) {
	good := langevin.Posterior{DataSize: 10, Prior: langevin.Gaussian(1), Layers: map[string]langevin.Prior{"conv1": langevin.Laplace(1)}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, p := range map[string]langevin.Posterior{
		"DataSize must be 1 to 2147483647, got 0":          {},
		"DataSize must be 1 to 2147483647, got -1":         {DataSize: -1},
		"DataSize must be 1 to 2147483647, got 4294967296": {DataSize: 1 << 32},
		"scale must be positive, got -1":                   {DataSize: 10, Prior: langevin.Gaussian(-1)},
		`layer "conv1"`:                                    {DataSize: 10, Layers: map[string]langevin.Prior{"conv1": langevin.Laplace(0)}},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", p, err, want)
		}
	}
}

func TestStepSizes(t *testing.T) {
	p := langevin.Posterior{DataSize: 4}
	if got := p.StepSize(0.5); got != 0.125 {
		t.Errorf("step size %v, want 0.125", got)
	}
	if got := p.StepSizes([]float64{1, 2, 0}); len(got) != 3 || got[0] != 0.25 || got[1] != 0.5 || got[2] != 0 {
		t.Errorf("step sizes %v, want those of rates 1, 2, 0 over 4", got)
	}
}

func TestLayer(t *testing.T) {
	for name, want := range map[string]string{"conv1.weight": "conv1", "block2.conv1.bias": "block2.conv1", "scale": "scale", "": ""} {
		if got := langevin.LayerOf(name); got != want {
			t.Errorf("%q is of layer %q, want %q", name, got, want)
		}
	}
}

// TestPriorsByLayer: with no gradient and no noise, a step is -h times the slope of the prior. A
// parameter's own name comes before its layer's, and that before the common prior.
func TestPriorsByLayer(t *testing.T) {
	posterior := langevin.Posterior{
		DataSize: 8, Prior: langevin.StudentT(3, 2),
		Layers: map[string]langevin.Prior{"b": langevin.Gaussian(0.5), "b.bias": langevin.Laplace(0.25), "scale": langevin.Flat(), "c.b": langevin.Gaussian(4)},
	}
	want := map[string]langevin.Prior{
		"a.weight": posterior.Prior, "b.weight": langevin.Gaussian(0.5), "b.bias": langevin.Laplace(0.25), "scale": langevin.Flat(),
		"c.b.weight": langevin.Gaussian(4),
	}
	const h, n = 0.01, 6
	b := graph.New(tensor.Float64)
	zero := b.Data("zero", tensor.Float64, n)
	var pairs []*graph.Node
	for _, name := range []string{"a.weight", "b.weight", "b.bias", "scale", "c.b.weight"} {
		pairs = append(pairs, b.Parameter(name, trial.Normal(func(int) float64 { return 1 }), n), zero)
	}
	if err := langevin.Attach(b, langevin.SGLD{}, posterior, b.Apply(given{}, pairs...), []float64{h}, []float64{0}); err != nil {
		t.Fatal(err)
	}
	session := trial.Load(t, b, graph.LoadOptions{Seed: 3}, 1)
	before := map[string][]float64{}
	for name := range want {
		before[name] = trial.Values(t, session, name, 0, n)
	}
	trial.Advance(t, session, 1)
	for name, prior := range want {
		for i, got := range trial.Values(t, session, name, 0, n) {
			x := before[name][i]
			if want := x - h*priorEnergyGradient(prior, x); !(math.Abs(got-want) < 1e-14) {
				t.Errorf("%s: %v moved to %v, want %v under the prior %v", name, x, got, want, prior)
			}
		}
	}
	for i, metric := range session.Program().Metrics() {
		if want := langevin.VirialPrefix + []string{"a.weight", "b.weight", "b.bias", "scale", "c.b.weight"}[i]; metric != want {
			t.Errorf("metric %d is %q, want %q", i, metric, want)
		}
	}
}

// TestAttachRefuses: each mistake is an error that names what is wrong.
func TestAttachRefuses(t *testing.T) {
	type asked struct {
		sampler         langevin.Sampler
		posterior       langevin.Posterior
		h, temperatures []float64
		build           func(b *graph.Builder) (loss *graph.Node)
	}
	one := []float64{1}
	for want, change := range map[string]func(a *asked){
		"DataSize must be 1 to 2147483647, got 0": func(a *asked) { a.posterior.DataSize = 0 },
		`"conv2"`:           func(a *asked) { a.posterior.Layers = map[string]langevin.Prior{"conv2": langevin.Gaussian(1)} },
		`"w.bias"`:          func(a *asked) { a.posterior.Layers = map[string]langevin.Prior{"w.bias": langevin.Gaussian(1)} },
		`layer "w"`:         func(a *asked) { a.posterior.Layers = map[string]langevin.Prior{"w": langevin.Gaussian(0)} },
		"Lambda":            func(a *asked) { a.sampler = langevin.PSGLD{Gamma: langevin.GammaNone} },
		"got 0 and 1":       func(a *asked) { a.h = nil },
		"got 1 and 2":       func(a *asked) { a.temperatures = []float64{1, 1} },
		"got -1 and 1":      func(a *asked) { a.h = []float64{-1} },
		"got NaN and 1":     func(a *asked) { a.h = []float64{math.NaN()} },
		"step 1: step size": func(a *asked) { a.h, a.temperatures = []float64{1, 1}, []float64{1, math.Inf(1)} },
		"got 1 and -2":      func(a *asked) { a.temperatures = []float64{-2} },
		"no parameters": func(a *asked) {
			a.build = func(b *graph.Builder) *graph.Node { return b.Data("x", tensor.Float32) }
		},
		"a scalar": func(a *asked) {
			a.build = func(b *graph.Builder) *graph.Node { return b.Parameter(trial.ParameterName, nil, 3) }
		},
		"broken before": func(a *asked) {
			a.build = func(b *graph.Builder) *graph.Node {
				b.Fail(errors.New("broken before"))
				return nil
			}
		},
	} {
		a := asked{langevin.SGLD{}, langevin.Posterior{DataSize: 10}, one, one, func(b *graph.Builder) *graph.Node {
			return b.Apply(given{}, b.Parameter(trial.ParameterName, nil, 3), b.Data("zero", tensor.Float32, 3))
		}}
		change(&a)
		b := graph.New(tensor.Float32)
		err := langevin.Attach(b, a.sampler, a.posterior, a.build(b), a.h, a.temperatures)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestSamplersValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, p := range []langevin.PSGLD{
		{},
		{Alpha: -0.1, Lambda: 1, Gamma: langevin.GammaNone},
		{Alpha: 1, Lambda: 1, Gamma: langevin.GammaNone},
		{Alpha: nan, Lambda: 1, Gamma: langevin.GammaNone},
		{Alpha: 0.9, Gamma: langevin.GammaNone},
		{Alpha: 0.9, Lambda: -1, Gamma: langevin.GammaNone},
		{Alpha: 0.9, Lambda: nan, Gamma: langevin.GammaNone},
		{Alpha: 0.9, Lambda: inf, Gamma: langevin.GammaNone},
		{Alpha: 0.9, Lambda: 1},
		{Alpha: 0.9, Lambda: 1, Gamma: "exactly"},
		{Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaNone, FreezeAt: 3},
		{Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaFrozen},
		{Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaFrozen, FreezeAt: -1},
		{Alpha: 0.9, Lambda: 1, Gamma: langevin.GammaFrozen, FreezeAt: 1 << 31},
	} {
		if err := p.Validate(); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
	for _, row := range rows() {
		if err := row.sampler.Validate(); err != nil {
			t.Error(err)
		}
		if name := row.sampler.Name(); name == "" || name != strings.ToLower(name) {
			t.Errorf("%s is called %q, want a name in lower case", row.name, name)
		}
	}
}

// TestDataSizeOfGatheredRows: N is the number of rows that the loss's minibatches come from, or a
// multiple. Other data sets of the graph do not matter.
func TestDataSizeOfGatheredRows(t *testing.T) {
	for dataSize, right := range map[int]bool{6: true, 18: true, 5: false, 3: false, 1: false, 60000: true, 60001: false} {
		b := graph.New(tensor.Float64)
		x := b.Apply(op.GatherRows{Batch: op.Batch{Size: 2, Order: op.Shuffled}}, b.Table("x", []float64{1, 2, 3, 4, 5, 6}), b.Header())
		loss := b.Apply(op.Mean{}, b.Apply(op.Squared{}, b.Apply(op.Subtract{}, x, b.Parameter("mean", nil))))
		b.Output("other", b.Apply(op.GatherRows{Batch: op.Batch{Size: 2}}, b.Table("y", []float64{1, 2, 3, 4, 5}), b.Header()))
		err := langevin.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: dataSize}, loss, []float64{1e-3}, []float64{1})
		if right != (err == nil) || !right && !strings.Contains(err.Error(), "DataSize must be the number of examples, which is 6 for gather rows") {
			t.Errorf("%d examples: error %v", dataSize, err)
		}
		b = graph.New(tensor.Float64)
		x = b.Apply(op.GatherRows{Batch: op.Batch{Size: 6}}, b.Table("x", []float64{1, 2, 3, 4, 5, 6}), b.Header())
		loss = b.Apply(op.Mean{}, b.Apply(op.Squared{}, b.Apply(op.Subtract{}, x, b.Parameter("mean", nil))))
		langevin.Posterior{DataSize: dataSize}.Potential(b, loss)
		if right != (b.Err() == nil) {
			t.Errorf("%d examples: error of the potential %v", dataSize, b.Err())
		}
	}
}
