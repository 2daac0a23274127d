package langevin_test

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// byLayer makes steps of two layers that have no gradient, and returns the velocities' sums of
// squares and the thermostats of both.
func byLayer(t *testing.T, sampler langevin.Sampler, steps int) (squares, chis [2]float64) {
	t.Helper()
	const n = 500
	b := graph.New(tensor.Float64)
	zero := b.Data("zero", tensor.Float64, n)
	var pairs []*graph.Node
	names := [2]string{"a.weight", "b.weight"}
	for _, name := range names {
		pairs = append(pairs, b.Parameter(name, nil, n), zero)
	}
	posterior := langevin.Posterior{DataSize: 8}
	if err := langevin.Attach(b, sampler, posterior, b.Apply(given{}, pairs...), []float64{1e-3}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	session := trial.Load(t, b, graph.LoadOptions{Seed: 3}, 1)
	trial.Advance(t, session, steps)
	for i, name := range names {
		for _, v := range trial.Values(t, session, name+".momentum", 0, n) {
			squares[i] += v * v / n / 1e-3
		}
		if _, ok := sampler.(langevin.SGNHT); ok {
			chi := trial.Values(t, session, name+".thermostat", 0, 2)
			chis[i] = chi[0] + chi[1]
		}
	}
	return squares, chis
}

// TestByLayer: a layer that is named gets its own coupling and noise estimate, the others the
// common one.
func TestByLayer(t *testing.T) {
	_, common := byLayer(t, langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingEuler, Coupling: 0.01}, 1)
	_, chis := byLayer(t, langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingEuler, Coupling: 0.01, Couplings: "b=0.03"}, 1)
	if chis[0] != common[0] || !(math.Abs((chis[1]-0.1)/(common[1]-0.1)-3) < 1e-9) {
		t.Errorf("chi is %v with three times the coupling for b, %v without", chis, common)
	}
	// Without gradient noise, an estimate b lowers the temperature to (a - b)/a.
	squares, _ := byLayer(t, langevin.SGHMC{Friction: 0.5, NoiseEstimate: 0.1, NoiseEstimates: "a.weight=0.4/b=0"}, 200)
	for i, want := range []float64{0.2, 1} {
		if got := squares[i] * 0.75; !(math.Abs(got/want-1) < 0.25) { // 4 deviations of 500 velocities
			t.Errorf("layer %d has the kinetic temperature %.3g, want %.3g", i, got, want)
		}
	}
	exchange := langevin.ReplicaExchange{Temperatures: []float64{1, 2}, Every: 5, Minibatches: 1}
	for _, sampler := range []langevin.Sampler{
		langevin.SGHMC{Friction: 0.5, NoiseEstimates: "c=0.4"},
		langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingEuler, Coupling: 0.01, Couplings: "a.bias=1"},
	} {
		for name, attach := range map[string]func(b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) error{
			"attach": func(b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) error {
				return langevin.Attach(b, sampler, posterior, loss, []float64{1e-3}, []float64{1})
			},
			"control variates": func(b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) error {
				_, err := langevin.ControlVariates{BatchSize: 4}.Attach(b, sampler, posterior, loss, []float64{1e-3}, []float64{1})
				return err
			},
			"replica exchange": func(b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) error {
				_, err := exchange.Attach(b, sampler, posterior, loss, []float64{1e-3})
				return err
			},
		} {
			b := graph.New(tensor.Float64)
			loss := b.Apply(given{}, b.Parameter("a.weight", nil, 3), b.Data("zero", tensor.Float64, 3))
			if err := attach(b, langevin.Posterior{DataSize: 8}, loss); err == nil || !strings.Contains(err.Error(), "which is not among the parameters") {
				t.Errorf("%s: %#v: error %v", name, sampler, err)
			}
		}
	}
}

// TestFanIn: each parameter's prior has the variance gain/fan-in of its layer.
func TestFanIn(t *testing.T) {
	posterior := langevin.Posterior{
		DataSize: 8, Prior: langevin.FanIn(2),
		Layers: map[string]langevin.Prior{"out": langevin.FanIn(0.5), "out.bias": langevin.Flat()},
		FanIns: map[string]int{"turned.weight": 80},
	}
	names := []string{"conv.bias", "conv.weight", "norm.scale", "out.weight", "out.bias", "turned.weight", "turned.bias"}
	shapes := []tensor.Shape{{6}, {6, 2, 5, 5}, {6}, {10, 40}, {10}, {80, 3}, {3}}
	priors, err := posterior.Priors(names, shapes)
	if err != nil {
		t.Fatal(err)
	}
	for i, variance := range map[int]float64{0: 2. / 50, 1: 2. / 50, 2: 2, 3: 0.5 / 40, 5: 2. / 80, 6: 2. / 80} {
		if p := priors[i]; p.Kind != langevin.GaussianPrior || !(math.Abs(p.Scale*p.Scale/variance-1) < 1e-12) {
			t.Errorf("%s has the prior %v, want the variance %v", names[i], p, variance)
		}
	}
	if priors[4] != langevin.Flat() {
		t.Errorf("out.bias has the prior %v, want its own", priors[4])
	}
	if _, err := (langevin.Posterior{DataSize: 8, Layers: map[string]langevin.Prior{"conv2": langevin.FanIn(1)}}).Priors(names, shapes); err == nil {
		t.Error("a prior for a layer that there is not: no error")
	}
	b := graph.New(tensor.Float64)
	langevin.FanIn(1).Potential(b, b.Parameter("w", nil, 3))
	if b.Err() == nil {
		t.Error("the potential of a prior that is not known yet: no error")
	}
}

// TestFanInUpdate: samplers and potentials use the Gaussian for which FanIn stands.
func TestFanInUpdate(t *testing.T) {
	const out, in = 4, 6
	var ends, energies [2][]float64
	for i, prior := range []langevin.Prior{langevin.FanIn(1.5), langevin.Gaussian(0.5)} { // 1.5/6 = 0.5^2
		b := graph.New(tensor.Float64)
		w := b.Parameter("w.weight", trial.Normal(func(int) float64 { return 1 }), out, in)
		posterior := langevin.Posterior{DataSize: 8, Prior: prior}
		loss := b.Apply(given{}, w, b.Data("zero", tensor.Float64, out, in))
		b.Output("potential", posterior.Potential(b, loss))
		if err := langevin.Attach(b, langevin.SGLD{}, posterior, loss, []float64{0.01}, []float64{0.5}); err != nil {
			t.Fatal(err)
		}
		session := trial.Load(t, b, graph.LoadOptions{Seed: 3}, 1)
		trial.Advance(t, session, 3)
		ends[i], energies[i] = trial.Values(t, session, "w.weight", 0, out*in), trial.Values(t, session, "potential", 0, 1)
	}
	for i := range ends[0] {
		if !(math.Abs(ends[0][i]-ends[1][i]) < 1e-13) {
			t.Fatalf("element %d is %v, with the Gaussian %v", i, ends[0][i], ends[1][i])
		}
	}
	if !(math.Abs(energies[0][0]-energies[1][0]) < 1e-12*math.Abs(energies[1][0])) {
		t.Errorf("U is %v, with the Gaussian %v", energies[0], energies[1])
	}
}
