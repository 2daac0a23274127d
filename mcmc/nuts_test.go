package mcmc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// TestNUTSMoments: with a step size so large that trajectories' energies err, and so that their
// points' weights matter, draws have the target's moments.
func TestNUTSMoments(t *testing.T) {
	chains, draws := trial.ChainsOf(t, 64), trial.StepsOf(t, 300)
	for name, line := range lines() {
		t.Run(name, func(t *testing.T) {
			traces := exactRun{
				field: line.field, dimensions: 1, chains: chains, temperature: line.temperature, start: line.start, sampler: mcmc.NUTS{StepSize: 1.1},
			}.draw(t, draws, 1)
			if moment, z := line.worst(traceOf(t, traces, "w", 0)); z > trial.ZLimit {
				t.Errorf("%s is off by %.1f standard errors", moment, z)
			}
			if rate := meanOf(traceOf(t, traces, mcmc.TraceAcceptance, 0)); rate > 0.95 {
				t.Errorf("the mean acceptance is %v: the step is too small for a test", rate)
			}
			potentials := functionTrace(t, traces, "w", func(x []float64) float64 { return line.field.At(x, make([]float64, 1)) }, 0)
			same := func(a, b []float64) bool { return slices.EqualFunc(a, b, trial.SameBits) }
			if !slices.EqualFunc(potentials, traceOf(t, traces, mcmc.TracePotential, 0), same) {
				t.Error("potentials and draws do not belong together")
			}
		})
	}
}

// TestNUTSFollowsEnergy: with a small step size the energy of trajectories stays, at any
// temperature and with any masses.
func TestNUTSFollowsEnergy(t *testing.T) {
	for name, line := range lines() {
		traces := exactRun{
			field: line.field, dimensions: 1, chains: 4, temperature: line.temperature, start: line.start,
			sampler: mcmc.NUTS{StepSize: 0.02 / math.Sqrt(line.temperature)},
		}.draw(t, 10, 1)
		if rate := meanOf(traceOf(t, traces, mcmc.TraceAcceptance, 0)); rate < 0.999 {
			t.Errorf("%s: the mean acceptance is %v, want nearly 1", name, rate)
		}
	}
}

// TestNUTSPlane: in two dimensions, correlated, where trajectories curve; energies err here, too.
func TestNUTSPlane(t *testing.T) {
	f, temperature := trial.CorrelatedGaussian{A: 2, B: 1.2, C: 1}, 0.5
	scale := temperature / (f.A*f.C - f.B*f.B)
	traces := exactRun{
		field: f, dimensions: 2, chains: trial.ChainsOf(t, 16), temperature: temperature, sampler: mcmc.NUTS{StepSize: 0.9}, start: trial.StartAt(0.2),
	}.draw(t, trial.StepsOf(t, 800), 1)
	product := func(x []float64) float64 { return x[0] * x[1] }
	checkExpected(t, "xx", functionTrace(t, traces, "w", product, 0, 0), scale*f.C)
	checkExpected(t, "xy", functionTrace(t, traces, "w", product, 0, 1), -scale*f.B)
	checkExpected(t, "yy", functionTrace(t, traces, "w", product, 1, 1), scale*f.A)
	fourth := func(x []float64) float64 { return math.Pow(x[0], 4) }
	checkExpected(t, "xxxx", functionTrace(t, traces, "w", fourth, 0), 3*scale*f.C*scale*f.C)
}

// TestNUTSAdapts: to directions of very different widths, so that trajectories get short; and to
// the rate of acceptance.
func TestNUTSAdapts(t *testing.T) {
	f := trial.DiagonalGaussian{Smallest: 1, Largest: 2500}
	run := func(n mcmc.NUTS, draws int) (leapfrogSteps float64, traces *langevin.Traces) {
		traces = exactRun{field: f, dimensions: trial.Classes, chains: 4, temperature: 1, start: trial.StartAt(0.1), sampler: n}.draw(t, draws, 1)
		return meanOf(traceOf(t, traces, mcmc.TraceLeapfrogSteps, 0)), traces
	}
	leapfrogSteps, traces := run(mcmc.NUTS{Warmup: 500}, 250)
	for i := range trial.Classes {
		checkExpected(t, fmt.Sprint("mean ", i), traceOf(t, traces, "w", i), 0)
		checkExpected(t, fmt.Sprint("variance ", i), functionTrace(t, traces, "w", func(x []float64) float64 { return x[0] * x[0] }, i), 1/f.Curvature(i))
	}
	if rate := meanOf(traceOf(t, traces, mcmc.TraceAcceptance, 0)); math.Abs(rate-0.8) > 0.12 {
		t.Errorf("the mean acceptance is %.3f, want 0.8", rate)
	}
	if many, _ := run(mcmc.NUTS{StepSize: 0.02}, 20); leapfrogSteps > 12 || many < 40 {
		t.Errorf("%.1f leaps a draw after a warm-up, %.1f without masses", leapfrogSteps, many)
	}
	for _, steps := range traceOf(t, traces, mcmc.TraceStepSize, 0) {
		if slices.Min(steps) != slices.Max(steps) {
			t.Errorf("the step size goes from %v to %v after the warm-up", slices.Min(steps), slices.Max(steps))
		}
	}
	if n := meanOf(traceOf(t, traces, mcmc.TraceDiverged, 0)); n > 0 {
		t.Errorf("a fraction of %v of the trajectories diverged", n)
	}
}

// TestShortWarmup: after a warm-up of any length, however short, every chain accepts proposals.
func TestShortWarmup(t *testing.T) {
	for _, warmup := range []int{1, 2, 3, 4, 6, 9, 10} {
		for name, sampler := range map[string]mcmc.Sampler{
			"NUTS": mcmc.NUTS{Warmup: warmup},
			"HMC":  mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 4}, StepSize: 0.1, Warmup: warmup},
			"MALA": mcmc.Metropolis{Proposal: mcmc.MALA{}, StepSize: 0.05, Warmup: warmup},
		} {
			traces := exactRun{
				field: trial.DiagonalGaussian{Smallest: 1, Largest: 1}, dimensions: trial.Classes, chains: 4, temperature: 1,
				start: trial.StartAt(0.5), sampler: sampler,
			}.draw(t, 60, 1)
			for chain, trace := range traceOf(t, traces, mcmc.TraceAcceptance, 0) {
				if mean := meanOf([][]float64{trace}); mean < 0.1 {
					t.Errorf("%s, warm-up of %d: chain %d accepts with a mean probability of %v", name, warmup, chain, mean)
				}
			}
		}
	}
}

// TestNUTSThousandDimensions as TestThousandDimensions.
func TestNUTSThousandDimensions(t *testing.T) {
	const dimensions, temperature = 1000, 0.7
	traces := exactRun{
		field:      trial.DiagonalGaussian{Smallest: 0.5, Largest: 2},
		dimensions: dimensions, chains: 2, temperature: temperature, start: trial.StartAt(0.5), sampler: mcmc.NUTS{Warmup: 60},
	}.draw(t, 80, 1)
	checkExpected(t, "U", traceOf(t, traces, mcmc.TracePotential, 0), dimensions*temperature/2)
}

// TestNUTSDiverges: trajectories that diverge are counted.
func TestNUTSDiverges(t *testing.T) {
	traces := exactRun{
		field:      trial.DiagonalGaussian{Smallest: 1, Largest: 1e6},
		dimensions: trial.Classes, chains: 2, temperature: 1, start: trial.StartAt(1e-3), sampler: mcmc.NUTS{StepSize: 0.1},
	}.draw(t, 20, 1)
	if n := meanOf(traceOf(t, traces, mcmc.TraceDiverged, 0)); n < 0.9 {
		t.Errorf("a fraction of %v of the trajectories diverged, want nearly all", n)
	}
}

// TestNUTSDivergenceBound: a leapfrog step of size 1 from w = 0, where U/T has the curvature 1,
// leads to w = p and p/2, where the energy is p^2/8 higher in each dimension: dimensions/8 in all,
// in units of T, which is a divergence above 1000.
func TestNUTSDivergenceBound(t *testing.T) {
	for _, temperature := range []float64{1, 3} {
		for dimensions, want := range map[int]float64{300: 0, 7000: 0, 9000: 1} {
			traces := exactRun{
				field:      trial.DiagonalGaussian{Smallest: temperature, Largest: temperature},
				dimensions: dimensions, chains: 2, temperature: temperature, start: trial.StartAt(0), sampler: mcmc.NUTS{StepSize: 1},
			}.draw(t, 1, 1)
			if got := meanOf(traceOf(t, traces, mcmc.TraceDiverged, 0)); got != want {
				t.Errorf("%d dimensions at %v: a fraction of %v of the trajectories diverged, want %v", dimensions, temperature, got, want)
			}
		}
	}
}

// TestNUTSSameBits: chains are the same on their own and among others, on any number of threads, in
// one piece or two.
func TestNUTSSameBits(t *testing.T) {
	const dimensions, draws = 30, 6
	e := bowlRun(mcmc.NUTS{Warmup: 25}, dimensions)
	session, chains := e.load(t, graph.LoadOptions{Seed: 3}, 2)
	want := drawn(t, session, chains, draws, 2)
	for _, threads := range []int{1, 2, 3} {
		session, chains := e.load(t, graph.LoadOptions{Seed: 3, FirstChain: 5, Chains: 2}, threads)
		sameTraces(t, fmt.Sprint("chains 5 and 6 on threads: ", threads), want, drawn(t, session, chains, draws, 2), 5, dimensions)
	}
	session, chains = e.load(t, graph.LoadOptions{Seed: 3}, 1)
	first, second := drawn(t, session, chains, 4, 2), drawn(t, session, chains, draws-4, 2)
	for chain := range e.chains {
		got := append(traceOf(t, first, "w", 7)[chain], traceOf(t, second, "w", 7)[chain]...)
		if !slices.Equal(got, traceOf(t, want, "w", 7)[chain]) {
			t.Errorf("chain %d differs when it is drawn in two pieces", chain)
		}
	}
	sample, err := chains.Current(session, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, draw := sample.Parameters[0].Values[7], traceOf(t, second, "w", 7)[2][1]; sample.Chain != 2 || got != float32(draw) {
		t.Errorf("the sample of chain %d has %v, the draw %v", sample.Chain, got, draw)
	}
}

// patience is a context that ends after its error was asked for a number of times.
type patience struct {
	context.Context
	left int
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestNUTSResumes: chains in another session, with the states of a session that was stopped in the
// middle of a trajectory, continue bit for bit: in the warm-up before, within and after a window
// for learning masses, and later. A plan makes the draws that Draw makes.
func TestNUTSResumes(t *testing.T) {
	const dimensions, warmup, draws = 30, 45, 5
	e := bowlRun(mcmc.NUTS{Warmup: warmup}, dimensions)
	session, chains := e.load(t, graph.LoadOptions{Seed: 3}, 2)
	want := drawn(t, session, chains, draws, 1)
	if session.Steps() != warmup+draws || session.Evaluations() < 3*(warmup+draws) {
		t.Fatalf("%d steps and %d evaluations, want %d steps and trajectories before them", session.Steps(), session.Evaluations(), warmup+draws)
	}
	for _, made := range []int{0, 3, 20, 38, warmup} {
		old, chains := e.load(t, graph.LoadOptions{Seed: 3}, 2)
		advance := func(ctx context.Context, steps int) error {
			return langevin.Plan{Steps: steps, Thinning: 1}.Run(ctx, old, 10, func(langevin.Window) error { return nil }, chains)
		}
		if made > 0 {
			if err := advance(context.Background(), made); err != nil {
				t.Fatal(err)
			}
		}
		before := trial.Values(t, old, trial.ParameterName, 2, dimensions)
		if err := advance(&patience{context.Background(), 2}, made+1); !errors.Is(err, context.Canceled) || int(old.Steps()) != made {
			t.Fatalf("%v after %d steps, want the context's error after %d", err, old.Steps(), made)
		}
		if !slices.Equal(before, trial.Values(t, old, trial.ParameterName, 2, dimensions)) {
			t.Error("a trajectory that was stopped moved the chain")
		}
		session, chains := e.load(t, graph.LoadOptions{Seed: 4, FirstChain: 50}, 1)
		for chain := range e.chains {
			state := make([]byte, old.ChainBytes())
			if err := old.Save(chain, state); err != nil {
				t.Fatal(err)
			}
			if err := session.Restore(chain, state, old.Steps()); err != nil {
				t.Fatal(err)
			}
		}
		sameTraces(t, fmt.Sprint("resumed after ", made), drawn(t, session, chains, draws, 1), want, 0, dimensions)
	}
}

// TestNUTSMetrics: what is recorded at a step belongs to its draw.
func TestNUTSMetrics(t *testing.T) {
	const dimensions = 3
	e := bowlRun(mcmc.NUTS{StepSize: 0.7}, dimensions)
	session, chains := e.load(t, graph.LoadOptions{Seed: 3}, 2)
	for step := range 5 {
		traces := drawn(t, session, chains, 1, 1)
		for chain := range e.chains {
			sample, err := chains.Current(session, chain)
			if err != nil {
				t.Fatal(err)
			}
			at, slope, virial := trial.Values(t, session, trial.ParameterName, chain, dimensions), make([]float64, dimensions), 0.0
			potential := e.field.At(at, slope)
			for i, x := range at {
				virial += x * slope[i]
				if w := traceOf(t, traces, "w", i)[chain][0]; w != x || sample.Parameters[0].Values[i] != float32(x) {
					t.Errorf("the draw is %v, its trace %v, the sample has %v", x, w, sample.Parameters[0].Values[i])
				}
			}
			for name, want := range map[string]float64{mcmc.TracePotential: potential, langevin.VirialPrefix + trial.ParameterName: virial} {
				if got := session.Metric(chain, name, uint64(step)); !(math.Abs(got-want) < 1e-12*(1+math.Abs(want))) {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
			n, size := session.Metric(chain, mcmc.TraceLeapfrogSteps, uint64(step)), session.Metric(chain, mcmc.TraceStepSize, uint64(step))
			if n < 1 || size != 0.7 {
				t.Errorf("%v leapfrog steps of %v", n, size)
			}
		}
	}
}

// TestNUTSEdgeOfSupport: trajectories that leave the support end there.
func TestNUTSEdgeOfSupport(t *testing.T) {
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", trial.StartAt(1), 1)
	chains, err := mcmc.NUTS{StepSize: 0.4}.Attach(b, mcmc.Target{Potential: ray(b, w), Temperature: 0.6, Quantities: []mcmc.Quantity{{"w", w}}})
	if err != nil {
		t.Fatal(err)
	}
	traces := drawn(t, trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: 8}, 0), chains, 800, 2)
	checkExpected(t, "mean", traceOf(t, traces, "w", 0), 0.6)
	checkExpected(t, "square", functionTrace(t, traces, "w", func(x []float64) float64 { return x[0] * x[0] }, 0), 2*0.6*0.6)
}

// TestInfiniteDensity: a potential of -Inf, here below w = -1, ends a run of every sampler with an
// error.
func TestInfiniteDensity(t *testing.T) {
	for name, sampler := range map[string]mcmc.Sampler{
		"NUTS": mcmc.NUTS{StepSize: 0.5}, "HMC": mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 3}, StepSize: 0.5},
		"random walk": mcmc.Metropolis{Proposal: mcmc.RandomWalk{}, StepSize: 1},
	} {
		b := graph.New(tensor.Float64)
		w := b.Parameter("w", trial.StartAt(1), 1)
		log := b.Apply(op.Log{}, b.Apply(op.ReLU{}, b.Apply(op.Scale{Factor: 1, Offset: 1}, w)))
		potential := b.Apply(op.Sum{}, b.Apply(op.Add{}, b.Apply(op.Squared{}, w), log))
		chains, err := sampler.Attach(b, mcmc.Target{Potential: potential, Temperature: 1})
		if err != nil {
			t.Fatal(err)
		}
		session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: 4}, 0)
		_, err = chains.Sample(t.Context(), session, 500, 1)
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if _, isNUTS := sampler.(mcmc.NUTS); isNUTS && !strings.Contains(err.Error(), "the potential must not be -Inf") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNUTSStops(t *testing.T) {
	e := bowlRun(mcmc.NUTS{Warmup: 20}, 5)
	session, chains := e.load(t, graph.LoadOptions{Seed: 3}, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := chains.Sample(ctx, session, 3, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if got := drawn(t, session, chains, 3, 1).Draws(); got != 3 {
		t.Errorf("%d draws after a stop, want 3", got)
	}
	other, _ := e.load(t, graph.LoadOptions{Seed: 3}, 0)
	for name, draw := range map[string]func() error{
		"no draws":        func() error { _, err := chains.Sample(context.Background(), session, 0, 1); return err },
		"no thinning":     func() error { _, err := chains.Sample(context.Background(), session, 1, 0); return err },
		"another session": func() error { _, err := chains.Sample(context.Background(), other, 1, 1); return err },
	} {
		if draw() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for want, n := range map[string]mcmc.NUTS{
		"or 0 with a warm-up, got 0":                            {},
		"or 0 with a warm-up, got -1":                           {StepSize: -1},
		"Warmup must be at least 0 draws, got -1":               {StepSize: 1, Warmup: -1},
		"without a warm":                                        {StepSize: 1, TargetAcceptance: 0.5},
		"TargetAcceptance must be below 1, or 0 for 0.8, got 1": {Warmup: 1, TargetAcceptance: 1},
		"or 0 for 10, got 31":                                   {Warmup: 1, MaxDepth: 31},
	} {
		checkRefused(t, want, n, tensor.Float64, nil)
	}
	checkRefused(t, `"leapfrog steps"`, mcmc.NUTS{StepSize: 1}, tensor.Float64, func(t *mcmc.Target, w *graph.Node) {
		t.Quantities = []mcmc.Quantity{{mcmc.TraceLeapfrogSteps, w}}
	})
	b := graph.New(tensor.Float64)
	chains, err := mcmc.NUTS{Warmup: 20}.Attach(b, mcmc.Target{Potential: ray(b, b.Parameter("w", trial.StartAt(-1), 2)), Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chains.Sample(context.Background(), trial.Load(t, b, graph.LoadOptions{}, 1), 1, 1); err == nil {
		t.Error("a start without density: no error")
	}
}

// TestNUTSNeedsItsHook: a step without a trajectory is an error, at the start and later.
func TestNUTSNeedsItsHook(t *testing.T) {
	b := graph.New(tensor.Float64)
	potential := b.Apply(op.Sum{}, b.Apply(op.Squared{}, b.Parameter("x", nil, 2)))
	chains, err := mcmc.NUTS{StepSize: 0.5}.Attach(b, mcmc.Target{Potential: potential, Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := trial.Load(t, b, graph.LoadOptions{Chains: 2}, 1)
	ctx, plan := t.Context(), langevin.Plan{Steps: 20, Thinning: 1}
	for _, steps := range []int{0, 4, 11} {
		if steps > 0 {
			if _, err := (langevin.Plan{Steps: steps, Thinning: 1}).Collect(ctx, s, []string{"x"}, chains); err != nil {
				t.Fatal(err)
			}
		}
		_, err := plan.Collect(ctx, s, []string{"x"})
		if err == nil || !strings.Contains(err.Error(), "nuts without its Chains as a hook") {
			t.Errorf("after %d draws: error %v", steps, err)
		}
	}
	if _, err := plan.Collect(ctx, s, []string{"x"}, chains); err != nil {
		t.Error("with the hook:", err)
	}
}
