package langevin_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// matched is MatchedFriction in float64, with keep as a function of the noise share.
type matched struct {
	friction float64
	keep     func(share float64) float64
	sign     float64
	v        []float64
}

func rightKeep(share float64) float64 { return math.Sqrt(max(0, 1-share)) }

// step returns theta after a step.
func (s *matched) step(before []element) []float64 {
	h, temperature, n := before[0].h, before[0].temperature, before[0].n
	along, squares := 0.0, 0.0
	if before[0].step == 0 {
		s.v = make([]float64, len(before))
	}
	for i, e := range before {
		along += n * e.g * s.v[i]
		squares += n * e.g * n * e.g
		if e.step == 0 { // M has no velocities yet
			s.v[i] = math.Sqrt(h*temperature) * e.start
		}
	}
	removed := s.sign * (1 - s.keep(h*squares/temperature)) * along / squares
	theta, c := make([]float64, len(before)), math.Exp(-s.friction)
	for i, e := range before {
		s.v[i] -= (removed + h) * n * e.g
		theta[i] = e.theta + s.v[i]/2
		s.v[i] = c*s.v[i] + math.Sqrt((1-c*c)*h*temperature)*e.xi
		theta[i] += s.v[i] / 2
	}
	return theta
}

// TestMatchedFrictionFormula compares every step with the documented formula, at noise shares below
// and above 1.
func TestMatchedFrictionFormula(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, n := range []int{1, 7, 257, 4099} {
			t.Run(fmt.Sprintf("%v/%d", dtype, n), func(t *testing.T) {
				tr := record(t, experiment{
					sampler: langevin.MatchedFriction{Friction: 0.2, Masses: langevin.MassesEqual, BatchSize: 10}, dtype: dtype,
					field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, dimensions: n, prior: langevin.Laplace(0.5), dataSize: 50,
					start: trial.Normal(func(int) float64 { return 1 / math.Sqrt(float64(n)) }),
				})
				checkVirials(t, tr)
				// Minibatches are a fifth of the data.
				noisy := func(share float64) float64 { return rightKeep(0.8 * share) }
				if excess := tr.excessOfSteps((&matched{friction: 0.2, keep: noisy, sign: 1}).step); !(excess <= 1) {
					t.Errorf("off the formula by %.3g times the rounding", excess)
				}
				for name, wrong := range map[string]*matched{
					"no matched friction":  {friction: 0.2, keep: func(float64) float64 { return 1 }, sign: 1},
					"twice the friction":   {friction: 0.2, keep: func(share float64) float64 { return max(0, 1-0.8*share) }, sign: 1},
					"half of the friction": {friction: 0.2, keep: func(share float64) float64 { return noisy(share / 2) }, sign: 1},
					"all of it is noise":   {friction: 0.2, keep: rightKeep, sign: 1},
					"driven, not slowed":   {friction: 0.2, keep: noisy, sign: -1},
					"another friction":     {friction: 0.22, keep: noisy, sign: 1},
				} {
					if n == 7 {
						checkWrongSteps(t, tr, name, wrong.step)
					}
				}
			})
		}
	}
}

// matchedMoments returns the covariance of theta and v of one element of the chain on the potential
// k theta^2/2, with noise of the given standard deviation in each of d elements, for a rule with
// the given keep. It solves the recursion of the second moments, in which the direction of a
// gradient is independent of theta and v: exact where the noise is much larger than k theta.
func matchedMoments(friction, k, h, temperature, noise float64, d int, keep func(share float64) float64) *mat.Dense {
	// The means of 1 - keep and 1 - keep^2 over the lengths of gradients, for one element.
	const draws = 4000
	z := trial.NormalDraws(draws*d, 5)
	length := noise*noise + k*temperature
	slowed, lost := 0.0, 0.0
	for i := range draws {
		kept := keep(h * length * square(mat.Norm(mat.NewVecDense(d, z[i*d:(i+1)*d]), 2)) / temperature)
		slowed += (1 - kept) / float64(d*draws)
		lost += (1 - kept*kept) / float64(d*draws)
	}
	c := math.Exp(-friction)
	rest := still(curvature(k)).kick(1, h, noise, 0).drift(0.5).relax(c, (1-c*c)*h*temperature).drift(0.5)
	p := mat.NewDense(2, 2, []float64{temperature / k, 0, 0, h * temperature})
	for range 20000 {
		p.Set(0, 1, p.At(0, 1)*(1-slowed))
		p.Set(1, 0, p.At(0, 1))
		p.Set(1, 1, p.At(1, 1)*(1-lost))
		p.Mul(rest.m, p)
		p.Mul(p, rest.m.T())
		p.Add(p, rest.q)
	}
	return p
}

// noisyDataSize is N of noisyChains.
const noisyDataSize = 10

// noisyChains returns the mean over long chains of the squares of the coordinates of theta along
// the noise and across it, divided by T/k, with the standard errors from the differences between
// chains. Noise is in all d elements, or with shared along a direction that all of them share.
func noisyChains(t *testing.T, sampler langevin.Sampler, k, h, temperature, noise float64, d int, shared bool) (
	along, across, alongError, acrossError float64,
) {
	const chains, burnIn, spacing, samples = 64, 400, 20, 70
	b := graph.New(tensor.Float64)
	w := b.Parameter(trial.ParameterName, trial.Normal(func(int) float64 { return math.Sqrt(temperature / k) }), d)
	length := d
	if shared {
		length = 1
	}
	z := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(length)}, b.Header())
	if shared {
		ones := make([]float64, d)
		for i := range ones {
			ones[i] = 1 / math.Sqrt(float64(d))
		}
		z = b.Apply(op.ViewAs(d), b.Apply(op.MatMul{}, b.Table("direction", ones, d, 1), b.Apply(op.ViewAs(1, 1), z)))
	}
	quadratic := b.Apply(op.Scale{Factor: k / 2}, b.Apply(op.Sum{}, b.Apply(op.Squared{}, w)))
	loss := b.Apply(op.Add{}, quadratic, b.Apply(op.Scale{Factor: noise}, b.Apply(op.Sum{}, b.Apply(op.Multiply{}, w, z))))
	loss = b.Apply(op.Scale{Factor: 1.0 / noisyDataSize}, loss)
	if err := langevin.Attach(b, sampler, langevin.Posterior{DataSize: noisyDataSize}, loss, []float64{h}, []float64{temperature}); err != nil {
		t.Fatal(err)
	}
	session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: chains}, 1)
	trial.Advance(t, session, burnIn)
	with, without := make([]float64, chains), make([]float64, chains)
	for range samples {
		trial.Advance(t, session, spacing)
		for chain := range chains {
			sum, squares := 0.0, 0.0
			for _, x := range trial.Values(t, session, trial.ParameterName, chain, d) {
				sum, squares = sum+x, squares+x*x
			}
			one := sum * sum / float64(d)
			if !shared {
				one = squares / float64(d)
			}
			with[chain] += one * k / temperature / samples
			without[chain] += (squares - one) / float64(d-1) * k / temperature / samples
		}
	}
	along, alongError = stat.MeanStdDev(with, nil)
	across, acrossError = stat.MeanStdDev(without, nil)
	return along, across, alongError / math.Sqrt(chains), acrossError / math.Sqrt(chains)
}

// TestMatchedFrictionMoments compares the variance of theta with the exact moments of the
// discretised chain, and refutes wrong rules by theirs. The noise is of all elements, independent,
// or along a single direction that no element shows.
func TestMatchedFrictionMoments(t *testing.T) {
	const k, temperature, friction, d = 2, 0.7, 0.03, 16
	for _, c := range []struct {
		name     string
		h, share float64
		shared   bool
		batch    int
	}{{"independent", 0.0004, 0.5, false, 0}, {"shared", 0.0004, 0.1, true, 0}, {"ten minibatches", 0.5 / (16 * 9 * k), 0.5, false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			sampler := langevin.MatchedFriction{Friction: friction, Masses: langevin.MassesEqual, BatchSize: c.batch}
			part := 1 - float64(c.batch)/noisyDataSize // of g g' that is noise
			directions := d
			if c.shared {
				directions = 1
			}
			noise := math.Sqrt(c.share * temperature / (c.h * float64(directions)))
			of := func(keep func(share float64) float64) float64 {
				return matchedMoments(friction, k, c.h, temperature, noise, directions, keep).At(0, 0) * k / temperature
			}
			want := of(func(share float64) float64 { return rightKeep(part * share) })
			if !(math.Abs(want-1) < 0.03) {
				t.Errorf("the exact temperature is %.4f times T: off by more than 3 %%", want)
			}
			got, across, e, acrossError := noisyChains(t, sampler, k, c.h, temperature, noise, d, c.shared)
			t.Logf("temperature %.4f ± %.4f, exact %.4f, across %.4f ± %.4f", got, e, want, across, acrossError)
			if z := (got - want) / e; !(math.Abs(z) < trial.ZLimit) {
				t.Errorf("z = %.1f", z)
			}
			if z := (across - 1) / acrossError; c.shared && !(math.Abs(z) < trial.ZLimit) {
				t.Errorf("across the noise: z = %.1f", z)
			}
			for name, keep := range map[string]func(share float64) float64{
				"no matched friction":  func(float64) float64 { return 1 },
				"twice the friction":   func(share float64) float64 { return max(0, 1-part*share) },
				"half of the friction": func(share float64) float64 { return rightKeep(part * share / 2) },
				"all of it is noise":   rightKeep,
			} {
				if name == "all of it is noise" && c.batch == 0 {
					continue
				}
				if z := (got - of(keep)) / e; math.Abs(z) < trial.ZLimit {
					t.Errorf("%s, %.3f, is not noticed: z = %.1f", name, of(keep), z)
				}
			}
		})
	}
}

// TestMatchedFrictionIsBAOAB at temperature 0, bit for bit.
func TestMatchedFrictionIsBAOAB(t *testing.T) {
	var values [2][]float64
	for i, sampler := range []langevin.Sampler{langevin.BAOAB{Friction: 0.1}, langevin.MatchedFriction{Friction: 0.1, Masses: langevin.MassesEqual}} {
		session := experiment{
			sampler: sampler, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, dimensions: 1500, chains: 1, dataSize: 10, step: 0.05,
			start: trial.Normal(func(int) float64 { return 1 }),
		}.load(t)
		trial.Advance(t, session, 20)
		values[i] = trial.Values(t, session, trial.ParameterName, 0, 1500)
	}
	for i, v := range values[0] {
		if values[1][i] != v {
			t.Fatalf("element %d is %v, want BAOAB's %v", i, values[1][i], v)
		}
	}
}

// TestMatchedFrictionMasses: parameters of different priors have their own temperature T, and with
// MassesPrior each moves in units of its prior.
func TestMatchedFrictionMasses(t *testing.T) {
	const h, temperature, chains = 4e-4, 0.8, 64
	attach := func(masses langevin.Masses, wide langevin.Prior) (*graph.Session, error) {
		b := graph.New(tensor.Float64)
		narrow := b.Parameter("a.weight", trial.Normal(func(int) float64 { return 0.1 }), 12)
		other := b.Parameter("b.weight", trial.Normal(func(int) float64 { return 1 }), 4)
		z := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(12)}, b.Header())
		noise := b.Apply(op.Scale{Factor: 46}, b.Apply(op.Sum{}, b.Apply(op.Multiply{}, narrow, z)))
		loss := b.Apply(op.Add{}, noise, b.Apply(op.Scale{Factor: 1e-12}, b.Apply(op.Sum{}, other)))
		posterior := langevin.Posterior{DataSize: 1, Prior: langevin.Gaussian(0.1), Layers: map[string]langevin.Prior{"b": wide}}
		if err := langevin.Attach(b, langevin.MatchedFriction{Friction: 0.05, Masses: masses}, posterior, loss, []float64{h}, []float64{temperature}); err != nil {
			return nil, err
		}
		return trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: chains}, 1), nil
	}
	session, err := attach(langevin.MassesPrior, langevin.Gaussian(1))
	if err != nil {
		t.Fatal(err)
	}
	trial.Advance(t, session, 500)
	squares := map[string][]float64{"a.weight": make([]float64, chains), "b.weight": make([]float64, chains)}
	for range 50 {
		trial.Advance(t, session, 20)
		for name, sums := range squares {
			n := map[string]int{"a.weight": 12, "b.weight": 4}[name]
			for chain := range chains {
				for _, x := range trial.Values(t, session, name, chain, n) {
					sums[chain] += x * x / float64(n*50)
				}
			}
		}
	}
	for name, variance := range map[string]float64{"a.weight": 0.01, "b.weight": 1} {
		mean, deviation := stat.MeanStdDev(squares[name], nil)
		got, e := mean/variance/temperature, deviation/variance/temperature/math.Sqrt(chains)
		t.Logf("%s: %.3f ± %.3f", name, got, e)
		if !(math.Abs(got-1) < trial.ZLimit*e+0.03) || e > 0.05 {
			t.Errorf("%s has %.3f ± %.3f times the temperature", name, got, e)
		}
	}
	if _, err := attach(langevin.MassesPrior, langevin.Laplace(1)); err == nil {
		t.Error("a prior that is not Gaussian: no error")
	}
	if _, err := attach(langevin.MassesEqual, langevin.Laplace(1)); err != nil {
		t.Error(err)
	}
}

// TestMatchedFrictionValidate: values out of range, and one parameter without the others, are
// errors.
func TestMatchedFrictionValidate(t *testing.T) {
	equal := langevin.MassesEqual
	for _, s := range []langevin.MatchedFriction{
		{}, {Friction: 0.1}, {Friction: -1, Masses: equal}, {Friction: 0.1, Masses: "heavy"}, {Friction: 0.1, Masses: equal, BatchSize: -1},
	} {
		if err := s.Validate(); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
	b := graph.New(tensor.Float32)
	langevin.MatchedFriction{Friction: 0.1, Masses: langevin.MassesEqual}.Update(b, langevin.UpdateInputs{Name: "w"}, nil, nil)
	if b.Err() == nil {
		t.Error("a parameter without the others: no error")
	}
}

// TestMatchedFrictionBatches: minibatches of an epoch are an error; independent ones and all data
// are not.
func TestMatchedFrictionBatches(t *testing.T) {
	for batch, right := range map[op.Batch]bool{
		{Size: 2, Order: op.Independent}: true, {Size: 6, Order: op.Shuffled}: true, {Size: 2}: false, {Size: 2, Order: op.Shuffled}: false,
	} {
		b := graph.New(tensor.Float64)
		x := b.Apply(op.GatherRows{Batch: batch}, b.Table("x", []float64{1, 2, 3, 4, 5, 6}), b.Header())
		loss := b.Apply(op.Mean{}, b.Apply(op.Squared{}, b.Apply(op.Subtract{}, x, b.Parameter("mean", nil))))
		sampler := langevin.MatchedFriction{Friction: 0.1, Masses: langevin.MassesEqual}
		err := langevin.Attach(b, sampler, langevin.Posterior{DataSize: 6, Prior: langevin.Gaussian(1)}, loss, []float64{1e-3}, []float64{1})
		if right != (err == nil) || !right && !strings.Contains(err.Error(), "must be drawn independently") {
			t.Errorf("%+v: error %v", batch, err)
		}
	}
	b := graph.New(tensor.Float64)
	loss := b.Apply(op.Squared{}, b.Parameter("mean", nil))
	b.Output("monitor", b.Apply(op.GatherRows{Batch: op.Batch{Size: 2}}, b.Table("x", []float64{1, 2, 3, 4}), b.Header())) // the loss does not depend on it
	sampler := langevin.MatchedFriction{Friction: 0.1, Masses: langevin.MassesEqual}
	if err := langevin.Attach(b, sampler, langevin.Posterior{DataSize: 6}, loss, []float64{1e-3}, []float64{1}); err != nil {
		t.Errorf("minibatches of an epoch that the loss does not depend on: %v", err)
	}
}
