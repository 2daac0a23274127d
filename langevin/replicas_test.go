package langevin_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// wells is the sum of Height (theta^2 - 1)^2 + Tilt theta over the elements.
type wells struct{ Height, Tilt float64 }

func (f wells) At(theta, slope []float64) float64 {
	total := 0.0
	for i, x := range theta {
		slope[i] = 4*f.Height*x*(x*x-1) + f.Tilt
		total += f.Height*(x*x-1)*(x*x-1) + f.Tilt*x
	}
	return total
}

func (f wells) Potential(b *graph.Builder, w *graph.Node) *graph.Node {
	well := b.Apply(op.Squared{}, b.Apply(op.Scale{Factor: 1, Offset: -1}, b.Apply(op.Squared{}, w)))
	tilt := b.Apply(op.Scale{Factor: f.Tilt}, w)
	return b.Apply(op.Sum{}, b.Apply(op.Add{}, b.Apply(op.Scale{Factor: f.Height}, well), tilt))
}

// right is the probability that theta > 0.
func (f wells) right(temperature float64) float64 {
	var weights [2]float64
	for i := range 4000 {
		x := -2 + float64(i)/1000 + 0.0005
		weights[i/2000] += math.Exp(-f.At([]float64{x}, []float64{0}) / temperature)
	}
	return weights[1] / (weights[0] + weights[1])
}

// exchange loads an experiment whose chains exchange replicas. The experiment's temperature is
// ignored.
func (e experiment) exchange(t *testing.T, r langevin.ReplicaExchange, h []float64) (*graph.Session, *langevin.Replicas) {
	t.Helper()
	var replicas *langevin.Replicas
	session, _ := e.build(t, func(b *graph.Builder, loss *graph.Node) (err error) {
		replicas, err = r.Attach(b, e.sampler, langevin.Posterior{DataSize: e.dataSize, Prior: e.prior}, loss, h)
		return err
	})
	return session, replicas
}

// follow runs an observer after every step.
func follow(t *testing.T, s *graph.Session, steps int, observe func(), hooks ...langevin.Hook) {
	t.Helper()
	plan := langevin.Plan{Steps: int(s.Steps()) + steps, Thinning: 1}
	err := plan.Run(context.Background(), s, 1, func(langevin.Window) error { observe(); return nil }, hooks...)
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplicasAreChainsAtTheirTemperatures: as long as they do not swap, bit for bit; step sizes
// and temperatures as well.
func TestReplicasAreChainsAtTheirTemperatures(t *testing.T) {
	h, temperatures, factors := []float64{0.01, 0.03, 0.002}, []float64{0.5, 0.7, 1.3}, []float64{1, 0.5, 4}
	for _, sampler := range []langevin.Sampler{langevin.SGLD{}, langevin.PSGLD{Alpha: 0.6, Lambda: 0.05, Gamma: langevin.GammaFrozen, FreezeAt: 3}} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
			e := experiment{
				sampler: sampler, dtype: dtype, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3},
				noise: 2, dimensions: 257, prior: langevin.Gaussian(0.3), dataSize: 64, chains: 6,
				start: trial.Normal(func(int) float64 { return 1 }),
			}
			replicas, _ := e.exchange(t, langevin.ReplicaExchange{Temperatures: temperatures, StepFactors: factors, Every: 100, Minibatches: 1}, h)
			trial.Advance(t, replicas, 7)
			for rung, temperature := range temperatures {
				steps := make([]float64, len(h))
				for i := range h {
					steps[i] = h[i] * factors[rung]
				}
				// The tables of this builder have no streams: noise is the same.
				plain := e.loadSchedule(t, steps, slices.Repeat([]float64{temperature}, len(h)))
				trial.Advance(t, plain, 7)
				for _, chain := range []int{rung, rung + 3} {
					got, want := trial.Values(t, replicas, trial.ParameterName, chain, 257), trial.Values(t, plain, trial.ParameterName, chain, 257)
					if !slices.Equal(got, want) {
						t.Errorf("%s, %v: chain %d is not that of temperature %v", sampler.Name(), dtype, chain, temperature)
					}
				}
			}
		}
	}
}

// TestSwaps compares every decision with the formula, in float64, where nothing moves because the
// step size is 0; and the states of the coldest chains with the distribution of their temperature,
// which they have from the start and which swaps keep.
func TestSwaps(t *testing.T) {
	const dimensions, attempts = 3, 6
	ladders := trial.ChainsOf(t, 600)
	temperatures := []float64{0.5, 0.9, 1.7, 3}
	rungs := len(temperatures)
	field := trial.DiagonalGaussian{Smallest: 1, Largest: 4}
	e := experiment{
		sampler: langevin.SGLD{}, dtype: tensor.Float64, field: field, dimensions: dimensions, dataSize: 8, chains: ladders * rungs,
		start: func(seed uint64, chain uint32, stream uint16, shape tensor.Shape, values []float64) {
			trial.Normal(func(i int) float64 { return math.Sqrt(temperatures[int(chain)%rungs] / field.Curvature(i)) })(seed, chain, stream, shape, values)
		},
	}
	session, replicas := e.exchange(t, langevin.ReplicaExchange{Temperatures: temperatures, Every: 2, Minibatches: 1}, []float64{0})
	potentials := make([]float64, ladders*rungs)
	for chain := range potentials {
		potentials[chain] = field.At(trial.Values(t, session, trial.ParameterName, chain, dimensions), make([]float64, dimensions))
	}
	order := make([][]int, ladders)
	for i := range order {
		for rung := range rungs {
			order[i] = append(order[i], i*rungs+rung)
		}
	}
	accepted, all, expected := 0.0, 0.0, 0.0
	for attempt := 1; attempt <= attempts; attempt++ {
		trial.Advance(t, session, 2)
		if !replicas.Due(2*attempt) || replicas.Due(2*attempt-1) || replicas.Due(0) {
			t.Fatal("swaps are not due every second step, from the second on")
		}
		if err := replicas.OnStep(context.Background(), session); err != nil {
			t.Fatal(err)
		}
		for i, ladder := range order {
			for rung := attempt % 2; rung+1 < rungs; rung += 2 {
				delta := 1/temperatures[rung] - 1/temperatures[rung+1]
				probability := math.Min(1, math.Exp(delta*(potentials[ladder[rung]]-potentials[ladder[rung+1]])))
				var words [2]uint32
				random.Bits(words[:], 2*rung, random.Address{Seed: trial.RunSeed, Chain: uint32(i * rungs), Step: uint64(2 * attempt), Stream: random.OrderStream - 2})
				if float64(words[0])/(1<<32)+float64(words[1]>>11)/(1<<53) < probability {
					ladder[rung], ladder[rung+1] = ladder[rung+1], ladder[rung]
					accepted++
				}
				all++
				expected += probability
			}
		}
		cold, err := replicas.Cold(session)
		if err != nil {
			t.Fatal(err)
		}
		for i := range cold {
			if cold[i] != order[i][0] {
				t.Fatalf("attempt %d: the coldest chain of ladder %d is %d, want %d", attempt, i, cold[i], order[i][0])
			}
		}
	}
	if share, err := replicas.AcceptanceRate(session); err != nil || math.Abs(share-accepted/all) > 1e-9 || share < 0.3 || share > 0.95 {
		t.Errorf("share of swaps %v (%v), want %v", share, err, accepted/all)
	}
	if z := (accepted - expected) / math.Sqrt(all/4); math.Abs(z) > trial.ZLimit {
		t.Errorf("%v swaps of %v, want about %v: z = %.1f", accepted, all, expected, z)
	}
	samples, err := replicas.Samples(session, 0.25)
	if err != nil || len(samples) != ladders {
		t.Fatalf("%d samples (%v), want %d", len(samples), err, ladders)
	}
	total, moved := 0.0, 0
	for i, sample := range samples {
		if sample.Chain != i || sample.Step != 2*attempts || sample.Weight != 0.25 {
			t.Fatalf("sample %d is chain %d's at step %d, of weight %v", i, sample.Chain, sample.Step, sample.Weight)
		}
		if order[i][0]%rungs != 0 {
			moved++
		}
		for j, v := range sample.Parameters[0].Values {
			total += float64(v) * float64(v) * field.Curvature(j) / temperatures[0]
		}
	}
	n := float64(ladders * dimensions)
	if z := (total/n - 1) / math.Sqrt(2/n); math.Abs(z) > trial.ZLimit || moved < ladders/3 {
		t.Errorf("the coldest chains, of which %d have moved there, have %.3f times the variance: z = %.1f", moved, total/n, z)
	}
}

// TestReplicasCross has two wells, between which a cold chain without a ladder never crosses. The
// coldest chains of the ladders visit the other well with the right probability.
func TestReplicasCross(t *testing.T) {
	const burnIn = 400
	ladders, steps := trial.ChainsOf(t, 60), trial.StepsOf(t, 1500)
	field, cold := wells{4, 0.3}, 0.5
	e := experiment{sampler: langevin.SGLD{}, field: field, dimensions: 1, dataSize: 5, chains: 3 * ladders, start: trial.StartAt(1)}
	session, replicas := e.exchange(t, langevin.ReplicaExchange{
		Temperatures: []float64{cold, 1.4, 4}, StepFactors: []float64{1, 1, 0.8}, Every: 5, Minibatches: 1,
	}, []float64{0.005})
	averages, ones := make([][]float64, ladders), make([][]float64, ladders)
	for i := range averages {
		averages[i] = []float64{0}
	}
	follow(t, session, burnIn, func() {}, replicas)
	follow(t, session, steps, func() {
		chains, err := replicas.Cold(session)
		if err != nil {
			t.Fatal(err)
		}
		for i, chain := range chains {
			if trial.Values(t, session, trial.ParameterName, chain, 1)[0] > 0 {
				averages[i][0] += 1 / float64(steps)
			}
		}
	}, replicas)
	right := func(temperature float64) float64 {
		return scores(averages, ones, func([]float64) []float64 { return []float64{field.right(temperature)} })[0]
	}
	if z := right(cold); math.Abs(z) > trial.ZLimit {
		t.Errorf("the right well's share: z = %.1f from %.3f", z, field.right(cold))
	}
	for _, wrong := range []float64{cold / 2, 1.4, 4} {
		if z := right(wrong); math.Abs(z) < trial.ZLimit && !trial.Underpowered(math.Abs(z-right(cold))) {
			t.Errorf("temperature %v is not refuted: z = %.1f", wrong, z)
		}
	}
	// On their own, cold chains stay where they were.
	e.chains, e.step, e.temperature = ladders, 0.005, cold
	alone := e.load(t)
	trial.Advance(t, alone, burnIn+steps)
	stayed := 0
	for chain := range e.chains {
		if trial.Values(t, alone, trial.ParameterName, chain, 1)[0] > 0 {
			stayed++
		}
	}
	if stayed < ladders*5/6 {
		t.Errorf("of %d cold chains on their own %d are where they began, want most", ladders, stayed)
	}
}

// TestReplicaExchangeRefuses: attributes, samplers and sessions that have no meaning are errors.
func TestReplicaExchangeRefuses(t *testing.T) {
	good := langevin.ReplicaExchange{Temperatures: []float64{1, 2}, Every: 5, Minibatches: 1}
	attach := func(change func(r *langevin.ReplicaExchange), sampler langevin.Sampler) error {
		r := good
		change(&r)
		b := graph.New(tensor.Float32)
		loss := b.Apply(op.Sum{}, b.Apply(op.Squared{}, b.Parameter(trial.ParameterName, nil, 3)))
		_, err := r.Attach(b, sampler, langevin.Posterior{DataSize: 2}, loss, []float64{0.1})
		return err
	}
	if err := attach(func(*langevin.ReplicaExchange) {}, langevin.SGLD{}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(r *langevin.ReplicaExchange){
		"one temperature":            func(r *langevin.ReplicaExchange) { r.Temperatures = []float64{1} },
		"falling temperatures":       func(r *langevin.ReplicaExchange) { r.Temperatures = []float64{2, 1} },
		"equal temperatures":         func(r *langevin.ReplicaExchange) { r.Temperatures = []float64{1, 1} },
		"a temperature of 0":         func(r *langevin.ReplicaExchange) { r.Temperatures = []float64{0, 1} },
		"an infinite temperature":    func(r *langevin.ReplicaExchange) { r.Temperatures = []float64{1, math.Inf(1)} },
		"factors of another number":  func(r *langevin.ReplicaExchange) { r.StepFactors = []float64{1} },
		"a negative factor":          func(r *langevin.ReplicaExchange) { r.StepFactors = []float64{1, -1} },
		"no interval":                func(r *langevin.ReplicaExchange) { r.Every = 0 },
		"no minibatch":               func(r *langevin.ReplicaExchange) { r.Minibatches = 0 },
		"a correction of nothing":    func(r *langevin.ReplicaExchange) { r.Correction = 1 },
		"no correction":              func(r *langevin.ReplicaExchange) { r.Minibatches = 2 },
		"a correction that is NaN":   func(r *langevin.ReplicaExchange) { r.Minibatches, r.Correction = 2, math.NaN() },
		"a batch size of one":        func(r *langevin.ReplicaExchange) { r.BatchSize = 1 },
		"more than an epoch":         func(r *langevin.ReplicaExchange) { r.Minibatches, r.Correction, r.BatchSize = 3, 1, 1 },
		"a negative batch size":      func(r *langevin.ReplicaExchange) { r.Minibatches, r.Correction, r.BatchSize = 2, 1, -1 },
		"a correction that is below": func(r *langevin.ReplicaExchange) { r.Minibatches, r.Correction = 2, -1 },
	} {
		if attach(change, langevin.SGLD{}) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, sampler := range []langevin.Sampler{
		langevin.SGHMC{Friction: 0.1}, langevin.BAOAB{Friction: 0.1}, langevin.SGNHT{Friction: 0.1, Splitting: "euler", Coupling: 1e-3}, langevin.PSGLD{},
		langevin.MatchedFriction{Friction: 1e-3, BatchSize: 1},
		langevin.KSGLD{Alpha: 0.9, Damping: 1, FreezeAt: 10, Refresh: 1, Rest: langevin.SGHMC{Friction: 0.1}},
	} {
		if attach(func(*langevin.ReplicaExchange) {}, sampler) == nil {
			t.Errorf("%s: no error", sampler.Name())
		}
	}
	for batchSize, right := range map[int]bool{2: true, 1: false, 3: false} {
		b := graph.New(tensor.Float64)
		x := b.Apply(op.GatherRows{Batch: op.Batch{Size: 2, Order: op.Shuffled}}, b.Table("x", make([]float64, 12)), b.Header())
		loss := b.Apply(op.Mean{}, b.Apply(op.Squared{}, b.Apply(op.Subtract{}, x, b.Parameter("mean", nil))))
		e := langevin.ReplicaExchange{Temperatures: []float64{1, 2}, Every: 1, Minibatches: 2, Correction: 1, BatchSize: batchSize}
		if _, err := e.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: 12}, loss, []float64{1e-3}); right != (err == nil) {
			t.Errorf("BatchSize %d for minibatches of 2: error %v", batchSize, err)
		}
	}
	for _, chains := range []int{1, 3} {
		e := experiment{sampler: langevin.SGLD{}, field: trial.DiagonalGaussian{Smallest: 1, Largest: 1}, dimensions: 2, dataSize: 1, chains: chains}
		session, replicas := e.exchange(t, good, []float64{0.1})
		if replicas.OnStep(context.Background(), session) == nil {
			t.Errorf("%d chains in ladders of 2: no error", chains)
		}
		if _, err := replicas.Samples(session, 1); err == nil {
			t.Errorf("%d chains in ladders of 2: samples without an error", chains)
		}
	}
	session, replicas := experiment{
		sampler: langevin.SGLD{}, field: trial.DiagonalGaussian{Smallest: 1, Largest: 1}, dimensions: 2, dataSize: 1, chains: 2,
	}.exchange(t, good, []float64{0.1})
	if err := graph.Write(session, "replica", 1, 0, []float32{0}); err != nil {
		t.Fatal(err)
	}
	if err := replicas.OnStep(context.Background(), session); err == nil {
		t.Errorf("two chains at one temperature: no error")
	}
}

// TestReplicasNeedTheirHook: a plan that runs without the hook, so that no temperatures would ever
// be swapped, is an error; a hook may embed it.
func TestReplicasNeedTheirHook(t *testing.T) {
	e := experiment{sampler: langevin.SGLD{}, field: wells{4, 0.3}, dimensions: 1, dataSize: 5, chains: 2, start: trial.StartAt(1)}
	exchange := langevin.ReplicaExchange{Temperatures: []float64{1, 2}, Every: 2, Minibatches: 1}
	session, replicas := e.exchange(t, exchange, []float64{0.005})
	observe := func(langevin.Window) error { return nil }
	err := langevin.Plan{Steps: 4, BurnIn: 2, Thinning: 1}.Run(t.Context(), session, 4, observe)
	const want = "a program with replica exchange must run with the Replicas that Attach returned as a hook, got none"
	if err == nil || !strings.Contains(err.Error(), want) || session.Steps() != 0 {
		t.Errorf("error %v after %d steps, want %q before the first", err, session.Steps(), want)
	}
	logged := struct{ *langevin.Replicas }{replicas}
	if err := (langevin.Plan{Steps: 4, BurnIn: 2, Thinning: 1}).Run(t.Context(), session, 4, observe, logged); err != nil {
		t.Error(err)
	}
}
