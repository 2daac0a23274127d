package langevin_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// leapfrog is a trajectory long enough that the tests below see no end of it, unless they want to.
func leapfrog(t *testing.T, f field, dimensions, leaps int, e float64, masses []float64) *graph.Session {
	t.Helper()
	hmc := langevin.HMC{Leaps: leaps}
	if masses != nil {
		hmc.Masses = map[string][]float64{parameterName: masses}
	}
	session, _ := exactRun{
		field: f, dimensions: dimensions, chains: 16, temperature: 1, start: normal(func(int) float64 { return 0.7 }),
		sampler: langevin.Metropolis{Proposal: hmc, StepSize: e},
	}.load(t, graph.LoadOptions{Seed: runSeed}, 0)
	return session
}

// TestLeapfrogReverses: with its momenta turned round, a trajectory goes back to where it began.
func TestLeapfrogReverses(t *testing.T) {
	const dimensions, leaps, e = 6, 17, 0.13
	masses := []float64{0.5, 1, 2, 0.7, 1.3, 3}
	for _, f := range []field{valley{2, 1.2, 1}, logGamma{1.5}} {
		session := leapfrog(t, f, dimensions, 3*leaps, e, masses)
		start, slope := make([][]float64, session.Chains()), make([]float64, dimensions)
		for chain := range start {
			start[chain] = values(t, session, parameterName, chain, dimensions)
		}
		advance(t, session, leaps)
		for chain := range start {
			// The momenta are those of the middle of the last leap. With them turned round, and half a kick before and after, the next leap is the last one.
			q, p := values(t, session, parameterName, chain, dimensions), values(t, session, parameterName+".momentum", chain, dimensions)
			if floats.Distance(q, start[chain], 2) < 0.1 {
				t.Fatalf("%v: the trajectory of chain %d goes nowhere: from %v to %v", f, chain, start[chain], q)
			}
			f.at(q, slope)
			for i := range p {
				p[i] = -p[i] + e*slope[i]
			}
			if err := graph.Write(session, parameterName+".momentum", chain, 0, p); err != nil {
				t.Fatal(err)
			}
		}
		advance(t, session, leaps)
		for chain := range start {
			for i, got := range values(t, session, parameterName, chain, dimensions) {
				if math.Abs(got-start[chain][i]) > 1e-11 {
					t.Errorf("%v, chain %d: element %d came back to %v, from %v", f, chain, i, got, start[chain][i])
				}
			}
		}
	}
}

// TestLeapfrogEnergyError: over a trajectory of a fixed time, the error of the energy is of second order in the step size.
func TestLeapfrogEnergyError(t *testing.T) {
	const dimensions = 6
	for _, f := range []field{valley{2, 1.2, 1}, logGamma{1.5}} {
		var deviations []float64
		for _, leaps := range []int{8, 16, 32, 64} {
			e := 1.6 / float64(leaps)
			session := leapfrog(t, f, dimensions, leaps+1, e, nil)
			advance(t, session, 1)
			start := make([]float64, session.Chains())
			for chain := range start {
				start[chain] = energy(t, session, f, parameterName+".position", chain, dimensions, e/2)
			}
			advance(t, session, leaps-1)
			sum := 0.0
			for chain := range start {
				d := energy(t, session, f, parameterName, chain, dimensions, -e/2) - start[chain]
				sum += d * d
			}
			deviations = append(deviations, math.Sqrt(sum))
		}
		for i, d := range deviations[1:] {
			if ratio := deviations[i] / d; ratio < 3.6 || ratio > 4.4 {
				t.Errorf("%v: with half the step size the energy's error falls from %v to %v, by %.2f, want 4", f, deviations[i], d, ratio)
			}
		}
	}
}

// energy is U + p.p/2 at a position, p being the momenta there: those of the session after another kick.
func energy(t *testing.T, s *graph.Session, f field, position string, chain, dimensions int, kick float64) float64 {
	t.Helper()
	q, p, slope := values(t, s, position, chain, dimensions), values(t, s, parameterName+".momentum", chain, dimensions), make([]float64, dimensions)
	h := f.at(q, slope)
	for i := range p {
		p[i] += kick * slope[i]
		h += p[i] * p[i] / 2
	}
	return h
}

// TestHMCOfOneLeapIsMALA: with e^2 = 2 h, the same noise and the same tests.
func TestHMCOfOneLeapIsMALA(t *testing.T) {
	const h, draws = 0.4, 50
	run := func(p langevin.Proposal, step float64) *langevin.Traces {
		return exactRun{
			field: logGamma{1.5}, dimensions: 5, chains: 4, temperature: 0.7, start: from(0),
			sampler: langevin.Metropolis{Proposal: p, StepSize: step},
		}.draw(t, draws, 1)
	}
	one, other := run(langevin.HMC{Leaps: 1}, math.Sqrt(2*h)), run(langevin.MALA{}, h)
	for _, name := range []string{"w", langevin.TraceAcceptance, langevin.TracePotential} {
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

// TestHMCMassesAreScales: masses k times as large, with a step size sqrt(k) times as large, change nothing.
func TestHMCMassesAreScales(t *testing.T) {
	run := func(mass, step float64) *langevin.Traces {
		hmc := langevin.HMC{Leaps: 4, Jitter: 0.2}
		if mass != 1 {
			hmc.Masses = map[string][]float64{parameterName: {mass, mass, mass}}
		}
		return exactRun{
			field: logGamma{1.5}, dimensions: 3, chains: 2, temperature: 0.7, start: from(0),
			sampler: langevin.Metropolis{Proposal: hmc, StepSize: step},
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
	good := langevin.Metropolis{Proposal: langevin.HMC{Leaps: 3}, StepSize: 0.1}
	hmc := func(h langevin.HMC) langevin.Metropolis { return langevin.Metropolis{Proposal: h, StepSize: 0.1} }
	for want, m := range map[string]langevin.Metropolis{
		"no proposal":      {StepSize: 0.1},
		"step size is 0":   {Proposal: langevin.MALA{}},
		"step size is NaN": {Proposal: langevin.MALA{}, StepSize: math.NaN()},
		"step size is +In": {Proposal: langevin.MALA{}, StepSize: math.Inf(1)},
		"warm-up of -1":    {Proposal: langevin.MALA{}, StepSize: 0.1, Warmup: -1},
		"without a warm":   {Proposal: langevin.MALA{}, StepSize: 0.1, AcceptanceRate: 0.5},
		"rate is 1":        {Proposal: langevin.MALA{}, StepSize: 0.1, AcceptanceRate: 1, Warmup: 1},
		"rate is -0.1":     {Proposal: langevin.MALA{}, StepSize: 0.1, AcceptanceRate: -0.1, Warmup: 1},
		"Acceptance is":    {Proposal: langevin.MALA{Acceptance: "sometimes"}, StepSize: 0.1},
		"Leaps is 0":       hmc(langevin.HMC{}),
		"Jitter is 1":      hmc(langevin.HMC{Leaps: 1, Jitter: 1}),
		"mass 1 of":        hmc(langevin.HMC{Leaps: 1, Masses: map[string][]float64{"w": {1, 0}}}),
		"3 masses for":     hmc(langevin.HMC{Leaps: 1, Masses: map[string][]float64{"w": {1, 1, 1}}}),
		`parameter "v"`:    hmc(langevin.HMC{Leaps: 1, Masses: map[string][]float64{"v": {1, 1}}}),
	} {
		checkRefused(t, want, m, tensor.Float64, nil)
	}
	for want, change := range map[string]func(t *langevin.Target, w *graph.Node){
		"is nil":           func(t *langevin.Target, _ *graph.Node) { t.Potential = nil },
		"has shape [2]":    func(t *langevin.Target, w *graph.Node) { t.Potential = w },
		"temperature is 0": func(t *langevin.Target, _ *graph.Node) { t.Temperature = 0 },
		"temperature is N": func(t *langevin.Target, _ *graph.Node) { t.Temperature = math.NaN() },
		`quantity ""`:      func(t *langevin.Target, w *graph.Node) { t.Quantities = []langevin.Quantity{{"", w}} },
		"name is empty or": func(t *langevin.Target, w *graph.Node) { t.Quantities = []langevin.Quantity{{"w", w}, {"w", w}} },
		`"step size": the`: func(t *langevin.Target, w *graph.Node) {
			t.Quantities = []langevin.Quantity{{langevin.TraceStepSize, w}}
		},
		`"w" is nil`: func(t *langevin.Target, w *graph.Node) { t.Quantities = []langevin.Quantity{{"w", nil}} },
	} {
		checkRefused(t, want, good, tensor.Float64, change)
	}
	checkRefused(t, "wants float64", good, tensor.Float32, nil)
}

func checkRefused(t *testing.T, want string, sampler langevin.Exact, dtype tensor.DType, change func(t *langevin.Target, w *graph.Node)) {
	t.Helper()
	b := graph.New(dtype)
	w := b.Parameter("w", nil, 2)
	target := langevin.Target{Potential: sumOfSquares(b, w), Temperature: 1}
	if change != nil {
		change(&target, w)
	}
	_, err := sampler.Attach(b, target)
	if err == nil || b.Err() == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
