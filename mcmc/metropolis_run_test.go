package mcmc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// adaptiveSamplers are all samplers with update ops as they run in practice.
func adaptiveSamplers(dimensions int) map[string]mcmc.Sampler {
	samplers := map[string]mcmc.Sampler{
		"MCLMC": mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.2, EnergyVariance: 1e-3}, StepSize: 0.1, Warmup: 9},
	}
	for name, m := range adaptiveRows(dimensions) {
		samplers[name] = m
	}
	return samplers
}

// adaptiveRows are the proposals as they run in practice.
func adaptiveRows(dimensions int) map[string]mcmc.Metropolis {
	masses := make([]float64, dimensions)
	for i := range masses {
		masses[i] = 1 + float64(i%3)
	}
	return map[string]mcmc.Metropolis{
		"random walk":       {Proposal: mcmc.RandomWalk{}, StepSize: 0.3, Warmup: 4},
		"MALA":              {Proposal: mcmc.MALA{}, StepSize: 0.05, Warmup: 4},
		"MALA on minibatch": {Proposal: mcmc.MALA{Test: mcmc.AcceptanceMinibatch}, StepSize: 0.05, Warmup: 4},
		"HMC": {
			Proposal: mcmc.HMC{LeapfrogSteps: 5, Jitter: 0.5, Masses: map[string][]float64{trial.ParameterName: masses}},
			StepSize: 0.1, Warmup: 4, TargetAcceptance: 0.8,
		},
	}
}

func bowlRun(sampler mcmc.Sampler, dimensions int) exactRun {
	return exactRun{
		sampler: sampler, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3},
		dimensions: dimensions, chains: 8, temperature: 0.9, start: trial.Normal(func(int) float64 { return 1 }),
	}
}

// sameTraces reports whether chains of two runs have the same values, bit for bit: all of want's
// chains, which are got's from first on.
func sameTraces(t *testing.T, name string, got, want *langevin.Traces, first, dimensions int) {
	t.Helper()
	for _, quantity := range want.Names() {
		size := 1
		if quantity == "w" {
			size = dimensions
		}
		for i := range size {
			g, w := traceOf(t, got, quantity, i), traceOf(t, want, quantity, i)
			for chain := range w {
				if !slices.Equal(g[first+chain], w[chain]) {
					t.Fatalf("%s: %s %d of chain %d is %v, want %v", name, quantity, i, first+chain, g[first+chain], w[chain])
				}
			}
		}
	}
}

// TestMetropolisSameBits: chains are the same on their own and among others, on any number of
// threads, in one piece or two, and when resumed in the middle of a trajectory.
func TestMetropolisSameBits(t *testing.T) {
	const dimensions, draws = 4099, 9
	for name, sampler := range adaptiveSamplers(dimensions) {
		t.Run(name, func(t *testing.T) {
			e := bowlRun(sampler, dimensions)
			session, chains := e.load(t, graph.LoadOptions{Seed: 3}, 2)
			want := drawn(t, session, chains, draws, 2)

			for _, threads := range []int{1, 2, 3} {
				session, chains := e.load(t, graph.LoadOptions{Seed: 3, FirstChain: 5, Chains: 2}, threads)
				sameTraces(t, fmt.Sprint("chains 5 and 6 on threads: ", threads), want, drawn(t, session, chains, draws, 2), 5, dimensions)
			}

			session, chains = e.load(t, graph.LoadOptions{Seed: 3}, 1)
			first, second := drawn(t, session, chains, 4, 2), drawn(t, session, chains, draws-4, 2)
			if first.Draws()+second.Draws() != want.Draws() {
				t.Fatalf("%d and %d draws, want %d", first.Draws(), second.Draws(), want.Draws())
			}
			for chain := range e.chains {
				got := append(traceOf(t, first, "w", 7)[chain], traceOf(t, second, "w", 7)[chain]...)
				if !slices.Equal(got, traceOf(t, want, "w", 7)[chain]) {
					t.Errorf("chain %d differs when it is drawn in two pieces", chain)
				}
			}

			old, _ := e.load(t, graph.LoadOptions{Seed: 3}, 2)
			trial.Advance(t, old, 3)
			session, chains = e.load(t, graph.LoadOptions{Seed: 4, FirstChain: 50}, 1)
			for chain := range e.chains {
				state := make([]byte, old.ChainBytes())
				if err := old.Save(chain, state); err != nil {
					t.Fatal(err)
				}
				if err := session.Restore(chain, state, 3); err != nil {
					t.Fatal(err)
				}
			}
			sameTraces(t, "resumed", drawn(t, session, chains, draws, 2), want, 0, dimensions)
		})
	}
}

// TestMetropolisInterpreted: the compiled program leaves the same bits as the interpreter; a GPU,
// whose exponentials are its own, the same numbers.
func TestMetropolisInterpreted(t *testing.T) {
	const dimensions, steps = 33, 13
	for name, sampler := range adaptiveSamplers(dimensions) {
		e := bowlRun(sampler, dimensions)
		b, _, _ := e.build(t)
		interpreter, err := graph.Interpret(b, graph.LoadOptions{Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		b, _, _ = e.build(t)
		session := trial.Load(t, b, graph.LoadOptions{Seed: 3}, 1)
		for range steps {
			if err := interpreter.Step(); err != nil {
				t.Fatal(err)
			}
		}
		trial.Advance(t, session, steps)
		states := []string{"w.weight", "w.weight.position", "w.draw", "metropolis"}
		if name == "MCLMC" {
			states = []string{"w.weight", "w.weight.position", "w.weight.direction", "mclmc"}
		}
		for _, input := range states {
			want, err := interpreter.Input(input)
			if err != nil {
				t.Fatal(err)
			}
			values64 := want.Data().([]float64)
			if got := trial.Values(t, session, input, 0, len(values64)); !slices.EqualFunc(got, values64, trial.SameBits) {
				t.Errorf("%s: %s is %v, the interpreter's %v", name, input, got, values64)
			}
		}
	}
}

// TestMetropolisUnderAPlan: Collect returns a parameter's draws, not the proposals that it holds.
func TestMetropolisUnderAPlan(t *testing.T) {
	const dimensions = 3
	for name, sampler := range adaptiveRows(dimensions) {
		session, chains := bowlRun(sampler, dimensions).load(t, graph.LoadOptions{Seed: 3}, 1)
		plan := langevin.Plan{Steps: 200, Thinning: 3}
		traces, err := plan.Collect(t.Context(), session, []string{"w.weight", "w.draw"}, chains)
		if err != nil {
			t.Fatal(err)
		}
		for i := range dimensions {
			got, want := traceOf(t, traces, "w.weight", i), traceOf(t, traces, "w.draw", i)
			for chain := range want {
				if !slices.Equal(got[chain], want[chain]) {
					t.Fatalf("%s: element %d of chain %d is %v, its draws %v", name, i, chain, got[chain], want[chain])
				}
			}
		}
	}
}

// TestMetropolisMetrics: the metrics of each step, and dual averaging against the formula, from the
// probabilities only.
func TestMetropolisMetrics(t *testing.T) {
	const warmup, steps = 60, 100
	sampler := mcmc.Metropolis{Proposal: mcmc.MALA{}, StepSize: 0.07, Warmup: warmup, TargetAcceptance: 0.5}
	session, _ := bowlRun(sampler, 5).load(t, graph.LoadOptions{Seed: 3}, 0)
	if err := session.Run(steps); err != nil {
		t.Fatal(err)
	}
	metric := func(chain int, name string, step int) float64 {
		return session.Metric(chain, name, uint64(step))
	}
	for chain := range session.Chains() {
		x, h, mean := math.Log(0.07), 0.0, 0.0
		for step := range steps {
			if m := float64(step); step > 0 && step <= warmup {
				h = (1-1/(m+10))*h + (0.5-metric(chain, mcmc.TraceAcceptance, step))/(m+10)
				x = math.Log(10*0.07) - math.Sqrt(m)/0.05*h
				mean = math.Pow(m, -0.75)*x + (1-math.Pow(m, -0.75))*mean
			}
			want := math.Exp(x)
			if step >= warmup {
				want = math.Exp(mean)
			}
			if got := metric(chain, mcmc.TraceStepSize, step); math.Abs(got/want-1) > 1e-10 {
				t.Fatalf("chain %d, step %d: the step size is %v, want %v", chain, step, got, want)
			}
		}
	}
	words := trial.Values(t, session, "metropolis", 0, 7)
	position := trial.Values(t, session, "w.weight.position", 0, 5)
	u, recorded := (trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}).At(position, make([]float64, 5)), metric(0, mcmc.TracePotential, steps-1)
	if math.Abs(recorded/u-1) > 1e-12 || words[1] != recorded {
		t.Errorf("potential %v is recorded, %v kept, at a position where it is %v", metric(0, mcmc.TracePotential, steps-1), words[1], u)
	}
}

// TestMetropolisAdapts: after the warm-up proposals are accepted at the rate asked for, chain by
// chain, and the step size stays.
func TestMetropolisAdapts(t *testing.T) {
	for _, c := range []struct {
		proposal   mcmc.Proposal
		start      float64
		rate, want float64
	}{
		{mcmc.RandomWalk{}, 10, 0, 0.234},
		{mcmc.MALA{}, 1e-4, 0, 0.574},
		{mcmc.MALA{}, 20, 0.8, 0.8},
		{mcmc.HMC{LeapfrogSteps: 3}, 30, 0, 0.651},
		{mcmc.HMC{LeapfrogSteps: 3}, 1e-3, 0.9, 0.9},
	} {
		e := bowlRun(mcmc.Metropolis{Proposal: c.proposal, StepSize: c.start, Warmup: 1500, TargetAcceptance: c.rate}, 10)
		e.chains = 4
		traces := e.draw(t, 400, 1)
		for chain, probabilities := range traceOf(t, traces, mcmc.TraceAcceptance, 0) {
			if rate := meanOf([][]float64{probabilities}); math.Abs(rate-c.want) > 0.1 {
				t.Errorf("%s from %v, chain %d: %.3f of the proposals were accepted, want %v", c.proposal.Name(), c.start, chain, rate, c.want)
			}
		}
		seen := map[float64]bool{}
		for _, steps := range traceOf(t, traces, mcmc.TraceStepSize, 0) {
			if slices.Min(steps) != slices.Max(steps) {
				t.Errorf("%s: the step size goes from %v to %v after the warm-up", c.proposal.Name(), slices.Min(steps), slices.Max(steps))
			}
			seen[steps[0]] = true
		}
		if len(seen) != e.chains {
			t.Errorf("%s: %d chains have %d step sizes", c.proposal.Name(), e.chains, len(seen))
		}
	}
}

// TestMetropolisThermometer: the configurational temperature of positions is T.
func TestMetropolisThermometer(t *testing.T) {
	for name, sampler := range adaptiveRows(40) {
		if name == "random walk" {
			continue
		}
		sampler.Warmup = 150
		session, _ := bowlRun(sampler, 40).load(t, graph.LoadOptions{Seed: 3}, 0)
		trial.Advance(t, session, 800)
		thermometer := diagnostics.NewThermometer(session.Program(), 1)
		for range 6 {
			trial.Advance(t, session, 100)
			thermometer.Observe(session, int(session.Steps())-100, int(session.Steps()))
		}
		if got := thermometer.Temperature(); math.Abs(got-0.9) > 0.05 {
			t.Errorf("%s: the temperature is %v, want 0.9", name, got)
		}
	}
}

// TestMetropolisTake: Current is the last draw, as a sample of a store.
func TestMetropolisTake(t *testing.T) {
	e := bowlRun(adaptiveRows(5)["HMC"], 5)
	session, chains := e.load(t, graph.LoadOptions{Seed: 3, FirstChain: 5}, 0)
	traces := drawn(t, session, chains, 3, 1)
	sample, err := chains.Current(session, 2)
	if err != nil {
		t.Fatal(err)
	}
	if sample.Chain != 7 || sample.Weight != 1 || sample.Step != int(session.Steps()) ||
		len(sample.Parameters) != 1 || sample.Parameters[0].Name != trial.ParameterName {
		t.Fatalf("got %+v", sample)
	}
	for i, got := range sample.Parameters[0].Values {
		if want := traceOf(t, traces, "w", i)[2][2]; got != float32(want) {
			t.Errorf("element %d is %v, the draw's %v", i, got, want)
		}
	}
	var file bytes.Buffer
	fmt.Fprint(&file, sample)
	if err := sample.Put(session, 2); err != nil {
		t.Error(err)
	}
}

// TestMetropolisStops: with the context's error.
func TestMetropolisStops(t *testing.T) {
	e := bowlRun(adaptiveRows(5)["HMC"], 5)
	session, chains := e.load(t, graph.LoadOptions{Seed: 3}, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := chains.Sample(ctx, session, 3, 1); !errors.Is(err, context.Canceled) || session.Steps() != 0 {
		t.Errorf("error %v after %d steps, want the context's at once", err, session.Steps())
	}
	for _, c := range [][2]int{{0, 1}, {1, 0}} {
		if _, err := chains.Sample(context.Background(), session, c[0], c[1]); err == nil {
			t.Errorf("%d draws with thinning %d: no error", c[0], c[1])
		}
	}
	traces := drawn(t, session, chains, 1, 1)
	for _, c := range []struct {
		name    string
		element int
	}{{"no", 0}, {"w", 5}, {"w", -1}} {
		if _, err := traces.Of(c.name, c.element); err == nil {
			t.Errorf("element %d of %q: no error", c.element, c.name)
		}
	}
}

// TestMetropolisDoesNotAllocate in its steps.
func TestMetropolisDoesNotAllocate(t *testing.T) {
	for name, sampler := range adaptiveRows(4099) {
		b := graph.New(tensor.Float64)
		w := b.Parameter(trial.ParameterName, trial.Normal(func(int) float64 { return 1 }), 4099)
		chains, err := sampler.Attach(b, mcmc.Target{Potential: trial.SumOfSquares(b, w), Temperature: 1, Quantities: []mcmc.Quantity{{"w", w}}})
		if err != nil || chains == nil {
			t.Fatal(err)
		}
		session := trial.Load(t, b, graph.LoadOptions{Chains: 2}, 2)
		if n := testing.AllocsPerRun(5, func() {
			if err := session.Run(4); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations in 4 steps", name, n)
		}
	}
}
