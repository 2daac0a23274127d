package mcmc_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// leapfrog is a trajectory so long that the tests below see its end only if they want to.
func leapfrog(t *testing.T, f trial.Field, dimensions, leapfrogSteps int, e float64, masses []float64) *graph.Session {
	t.Helper()
	hmc := mcmc.HMC{LeapfrogSteps: leapfrogSteps}
	if masses != nil {
		hmc.Masses = map[string][]float64{trial.ParameterName: masses}
	}
	session, _ := exactRun{
		field: f, dimensions: dimensions, chains: 16, temperature: 1, start: trial.Normal(func(int) float64 { return 0.7 }),
		sampler: mcmc.Metropolis{Proposal: hmc, StepSize: e},
	}.load(t, graph.LoadOptions{Seed: trial.RunSeed}, 0)
	return session
}

// TestLeapfrogReverses: with its momenta turned round, a trajectory goes back to where it began.
func TestLeapfrogReverses(t *testing.T) {
	const dimensions, leapfrogSteps, e = 6, 17, 0.13
	masses := []float64{0.5, 1, 2, 0.7, 1.3, 3}
	for _, f := range []trial.Field{trial.CorrelatedGaussian{A: 2, B: 1.2, C: 1}, trial.LogGamma{Shape: 1.5}} {
		session := leapfrog(t, f, dimensions, 3*leapfrogSteps, e, masses)
		start, slope := make([][]float64, session.Chains()), make([]float64, dimensions)
		for chain := range start {
			start[chain] = trial.Values(t, session, trial.ParameterName, chain, dimensions)
		}
		trial.Advance(t, session, leapfrogSteps)
		for chain := range start {
			// The momenta are from the middle of the last leapfrog step. With them reversed, and
			// half a kick before and after, the next step undoes the last one.
			q, p := trial.Values(t, session, trial.ParameterName, chain, dimensions), trial.Values(t, session, trial.ParameterName+".momentum", chain, dimensions)
			if floats.Distance(q, start[chain], 2) < 0.1 {
				t.Fatalf("%v: the trajectory of chain %d goes nowhere: from %v to %v", f, chain, start[chain], q)
			}
			f.At(q, slope)
			for i := range p {
				p[i] = -p[i] + e*slope[i]
			}
			if err := graph.Write(session, trial.ParameterName+".momentum", chain, 0, p); err != nil {
				t.Fatal(err)
			}
		}
		trial.Advance(t, session, leapfrogSteps)
		for chain := range start {
			for i, got := range trial.Values(t, session, trial.ParameterName, chain, dimensions) {
				if math.Abs(got-start[chain][i]) > 1e-11 {
					t.Errorf("%v, chain %d: element %d came back to %v, from %v", f, chain, i, got, start[chain][i])
				}
			}
		}
	}
}

// TestLeapfrogEnergyError: over a trajectory of a fixed time, the error of the energy is of second
// order in the step size.
func TestLeapfrogEnergyError(t *testing.T) {
	const dimensions = 6
	for _, f := range []trial.Field{trial.CorrelatedGaussian{A: 2, B: 1.2, C: 1}, trial.LogGamma{Shape: 1.5}} {
		var stds []float64
		for _, leapfrogSteps := range []int{8, 16, 32, 64} {
			e := 1.6 / float64(leapfrogSteps)
			session := leapfrog(t, f, dimensions, leapfrogSteps+1, e, nil)
			trial.Advance(t, session, 1)
			start := make([]float64, session.Chains())
			for chain := range start {
				start[chain] = energy(t, session, f, trial.ParameterName+".position", chain, dimensions, e/2)
			}
			trial.Advance(t, session, leapfrogSteps-1)
			sum := 0.0
			for chain := range start {
				d := energy(t, session, f, trial.ParameterName, chain, dimensions, -e/2) - start[chain]
				sum += d * d
			}
			stds = append(stds, math.Sqrt(sum))
		}
		for i, d := range stds[1:] {
			if ratio := stds[i] / d; ratio < 3.6 || ratio > 4.4 {
				t.Errorf("%v: with half the step size the energy's error falls from %v to %v, by %.2f, want 4", f, stds[i], d, ratio)
			}
		}
	}
}

// energy is U + p.p/2 at a position, with the momenta p there: the session's after another kick.
func energy(t *testing.T, s *graph.Session, f trial.Field, position string, chain, dimensions int, kick float64) float64 {
	t.Helper()
	q, p := trial.Values(t, s, position, chain, dimensions), trial.Values(t, s, trial.ParameterName+".momentum", chain, dimensions)
	slope := make([]float64, dimensions)
	h := f.At(q, slope)
	for i := range p {
		p[i] += kick * slope[i]
		h += p[i] * p[i] / 2
	}
	return h
}

// TestHMCOfOneLeapIsMALA: with e^2 = 2 h, the same noise and the same tests.
func TestHMCOfOneLeapIsMALA(t *testing.T) {
	const h, draws = 0.4, 50
	run := func(p mcmc.Proposal, step float64) *langevin.Traces {
		return exactRun{
			field: trial.LogGamma{Shape: 1.5}, dimensions: 5, chains: 4, temperature: 0.7, start: trial.StartAt(0),
			sampler: mcmc.Metropolis{Proposal: p, StepSize: step},
		}.draw(t, draws, 1)
	}
	one, other := run(mcmc.HMC{LeapfrogSteps: 1}, math.Sqrt(2*h)), run(mcmc.MALA{}, h)
	for _, name := range []string{"w", mcmc.TraceAcceptance, mcmc.TracePotential} {
		want := traceOf(t, other, name, 0)
		for chain, got := range traceOf(t, one, name, 0) {
			for i := range got {
				if math.Abs(got[i]-want[chain][i]) > 1e-9 {
					t.Fatalf("%s of chain %d, draw %d: %v by HMC, %v by MALA", name, chain, i, got[i], want[chain][i])
				}
			}
		}
	}
}

// TestHMCMassesAreScales: masses k times as large, with a step size sqrt(k) times as large, change
// nothing.
func TestHMCMassesAreScales(t *testing.T) {
	run := func(mass, step float64) *langevin.Traces {
		hmc := mcmc.HMC{LeapfrogSteps: 4, Jitter: 0.2}
		if mass != 1 {
			hmc.Masses = map[string][]float64{trial.ParameterName: {mass, mass, mass}}
		}
		return exactRun{
			field: trial.LogGamma{Shape: 1.5}, dimensions: 3, chains: 2, temperature: 0.7, start: trial.StartAt(0),
			sampler: mcmc.Metropolis{Proposal: hmc, StepSize: step},
		}.draw(t, 20, 1)
	}
	want := traceOf(t, run(1, 0.3), "w", 2)
	for chain, got := range traceOf(t, run(4, 0.6), "w", 2) {
		for i := range got {
			if math.Abs(got[i]-want[chain][i]) > 1e-9 {
				t.Fatalf("draw %d of chain %d is %v with a mass of 4, %v with one of 1", i, chain, got[i], want[chain][i])
			}
		}
	}
}

// TestMetropolisRefuses: attributes and targets that make no sense, with messages that name them.
func TestMetropolisRefuses(t *testing.T) {
	good := mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 3}, StepSize: 0.1}
	hmc := func(h mcmc.HMC) mcmc.Metropolis { return mcmc.Metropolis{Proposal: h, StepSize: 0.1} }
	for want, m := range map[string]mcmc.Metropolis{
		"Proposal must be":                   {StepSize: 0.1},
		"StepSize must be positive, got 0":   {Proposal: mcmc.MALA{}},
		"StepSize must be positive, got NaN": {Proposal: mcmc.MALA{}, StepSize: math.NaN()},
		"StepSize must be positive, got +In": {Proposal: mcmc.MALA{}, StepSize: math.Inf(1)},
		"proposals, got -1":                  {Proposal: mcmc.MALA{}, StepSize: 0.1, Warmup: -1},
		"without a warm":                     {Proposal: mcmc.MALA{}, StepSize: 0.1, TargetAcceptance: 0.5},
		"TargetAcceptance must be below 1, or 0 for the optimum, got 1":    {Proposal: mcmc.MALA{}, StepSize: 0.1, TargetAcceptance: 1, Warmup: 1},
		"TargetAcceptance must be below 1, or 0 for the optimum, got -0.1": {Proposal: mcmc.MALA{}, StepSize: 0.1, TargetAcceptance: -0.1, Warmup: 1},
		"Test must be":          {Proposal: mcmc.MALA{Test: "sometimes"}, StepSize: 0.1},
		"LeapfrogSteps must be": hmc(mcmc.HMC{}),
		"Jitter must be at least 0 and below 1, got 1": hmc(mcmc.HMC{LeapfrogSteps: 1, Jitter: 1}),
		"mass 1 of": hmc(mcmc.HMC{LeapfrogSteps: 1, Masses: map[string][]float64{"w": {1, 0}}}),
		`masses of "w": there must be one for each of its 2 elements, got 3`: hmc(mcmc.HMC{LeapfrogSteps: 1, Masses: map[string][]float64{"w": {1, 1, 1}}}),
		`masses of "v": there is no such parameter; there are ["w"]`:         hmc(mcmc.HMC{LeapfrogSteps: 1, Masses: map[string][]float64{"v": {1, 1}}}),
	} {
		checkRefused(t, want, m, tensor.Float64, nil)
	}
	for want, change := range map[string]func(t *mcmc.Target, w *graph.Node){
		"the potential must not be nil":            func(t *mcmc.Target, _ *graph.Node) { t.Potential = nil },
		"of shape [2]":                             func(t *mcmc.Target, w *graph.Node) { t.Potential = w },
		"temperature must be positive, got 0":      func(t *mcmc.Target, _ *graph.Node) { t.Temperature = 0 },
		"temperature must be positive, got N":      func(t *mcmc.Target, _ *graph.Node) { t.Temperature = math.NaN() },
		"the name of a quantity must not be empty": func(t *mcmc.Target, w *graph.Node) { t.Quantities = []mcmc.Quantity{{"", w}} },
		`quantity "w": the name must be unique`:    func(t *mcmc.Target, w *graph.Node) { t.Quantities = []mcmc.Quantity{{"w", w}, {"w", w}} },
		`"step size": the`: func(t *mcmc.Target, w *graph.Node) {
			t.Quantities = []mcmc.Quantity{{mcmc.TraceStepSize, w}}
		},
		`"w": the node must not be nil`: func(t *mcmc.Target, w *graph.Node) { t.Quantities = []mcmc.Quantity{{"w", nil}} },
	} {
		checkRefused(t, want, good, tensor.Float64, change)
	}
	checkRefused(t, "must be of float64", good, tensor.Float32, nil)
}

// TestChangingPotential: at the same parameters, a potential with dropout or of a minibatch has
// another value in each step, so that no test of a proposal would be right. Dropout of nothing and
// batches of all data are allowed.
func TestChangingPotential(t *testing.T) {
	minibatch := mcmc.MALA{Test: mcmc.AcceptanceMinibatch}
	dropout := func(rate float64) func(b *graph.Builder, w *graph.Node) *graph.Node {
		return func(b *graph.Builder, w *graph.Node) *graph.Node {
			return b.Apply(op.Dropout{Rate: rate, Stream: b.Stream()}, w, b.Header())
		}
	}
	gather := func(header func(b *graph.Builder) *graph.Node, batch op.Batch) func(b *graph.Builder, w *graph.Node) *graph.Node {
		return func(b *graph.Builder, w *graph.Node) *graph.Node {
			return b.Apply(op.Subtract{}, w, b.Apply(op.GatherRows{Batch: batch}, b.Table("x", []float64{1, 2}), header(b)))
		}
	}
	exact := []mcmc.Sampler{
		mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 3}, StepSize: 0.1}, mcmc.NUTS{StepSize: 0.1},
		mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.1, EnergyVariance: 1e-3}, StepSize: 0.1},
	}
	approximate := []mcmc.Sampler{mcmc.Metropolis{Proposal: minibatch, StepSize: 0.1}}
	for _, c := range []struct {
		samplers []mcmc.Sampler
		data     func(b *graph.Builder, w *graph.Node) *graph.Node
		refused  string
	}{
		{exact, dropout(0), ""},
		{exact, dropout(0.5), "dropout"},
		{exact, gather((*graph.Builder).Header, op.Batch{Size: 2, Order: op.Shuffled}), ""},
		{exact, gather((*graph.Builder).Header, op.Batch{Size: 1}), "gather rows"},
		{exact, gather(minibatch.BatchHeader, op.Batch{Size: 1}), "gather rows"},
		{approximate, gather(minibatch.BatchHeader, op.Batch{Size: 1}), ""},
		{approximate, gather((*graph.Builder).Header, op.Batch{Size: 1}), "gather rows"},
		{approximate, dropout(0.5), "dropout"},
	} {
		for _, sampler := range c.samplers {
			b := graph.New(tensor.Float64)
			w := b.Parameter("w", nil, 2)
			leave := b.Scope("layer")
			data := c.data(b, w)
			leave()
			_, err := sampler.Attach(b, mcmc.Target{Potential: trial.SumOfSquares(b, data), Temperature: 1})
			want := "without random numbers or minibatches, got " + c.refused
			if (c.refused != "") != (err != nil && strings.Contains(err.Error(), want)) {
				t.Errorf("%s, refused %q: error %v", sampler.Name(), c.refused, err)
			}
		}
	}
}

func checkRefused(t *testing.T, want string, sampler mcmc.Sampler, dtype tensor.DType, change func(t *mcmc.Target, w *graph.Node)) {
	t.Helper()
	b := graph.New(dtype)
	w := b.Parameter("w", nil, 2)
	target := mcmc.Target{Potential: trial.SumOfSquares(b, w), Temperature: 1}
	if change != nil {
		change(&target, w)
	}
	_, err := sampler.Attach(b, target)
	if err == nil || b.Err() == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
