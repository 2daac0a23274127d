package langevin_test

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

func TestMomentumValidate(t *testing.T) {
	euler, badodab := langevin.SplittingEuler, langevin.SplittingBADODAB
	for _, good := range []langevin.Sampler{
		langevin.SGHMC{Friction: 1}, langevin.SGHMC{Friction: 0.1, NoiseEstimate: 0.1}, langevin.BAOAB{Friction: 7},
		langevin.SGNHT{Friction: 1, Splitting: euler, Coupling: 1}, langevin.SGNHT{Friction: 0.1, Splitting: badodab, PerElement: true, Coupling: 1e-4},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%#v: %v", good, err)
		}
	}
	for _, c := range []struct {
		sampler langevin.Sampler
		want    string
	}{
		{langevin.SGHMC{}, "Friction must be above 0 and at most 1, got 0"},
		{langevin.SGHMC{Friction: 1.1}, "Friction must be above 0 and at most 1, got 1.1"},
		{langevin.SGHMC{Friction: math.NaN()}, "Friction must be above 0 and at most 1, got NaN"},
		{langevin.SGHMC{Friction: 0.1, NoiseEstimate: -1}, "NoiseEstimate must be 0 to Friction 0.1, got -1"},
		{langevin.SGHMC{Friction: 0.1, NoiseEstimate: 0.2}, "NoiseEstimate must be 0 to Friction 0.1, got 0.2"},
		{langevin.BAOAB{}, "Friction must be positive, got 0"},
		{langevin.BAOAB{Friction: math.Inf(1)}, "Friction must be positive, got +Inf"},
		{langevin.SGNHT{Splitting: euler}, "Friction must be above 0 and at most 1, got 0"},
		{langevin.SGNHT{Friction: 2, Splitting: euler}, "Friction must be above 0 and at most 1, got 2"},
		{langevin.SGNHT{Friction: 0.1}, `Splitting must be "euler" or "badodab", got ""`},
		{langevin.SGNHT{Friction: 0.1, Splitting: "BAOAB"}, `Splitting must be "euler" or "badodab", got "BAOAB"`},
		{langevin.SGNHT{Friction: 0.1, Splitting: euler}, "Coupling must be positive, got 0"},
		{langevin.SGNHT{Friction: 0.1, Splitting: euler, Coupling: math.Inf(1)}, "Coupling must be positive, got +Inf"},
		{langevin.SGNHT{Friction: 0.1, Splitting: euler, Coupling: 1, Couplings: "conv1=0"}, "Couplings: conv1 must be positive, got 0"},
		{langevin.SGHMC{Friction: 0.1, NoiseEstimates: "conv1=0.2"}, "NoiseEstimates: conv1 must be 0 to Friction, got 0.2"},
		{langevin.SGHMC{Friction: 0.1, NoiseEstimates: "conv1"}, `NoiseEstimates: "conv1" in "conv1" must be LAYER=NUMBER`},
		{langevin.SGHMC{Friction: 0.1, NoiseEstimates: "a=0/a=0.1"}, "a is given twice"},
	} {
		err := c.sampler.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "langevin: "+c.sampler.Name()+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%#v: error is %v, want %q", c.sampler, err, c.want)
		}
	}
}

// TestColdVelocities: at temperature 0 a rule that relaxes velocities exactly is Momentum with the
// decay c and the rate h N pace.
func TestColdVelocities(t *testing.T) {
	const n, steps = 257, 50
	for _, r := range rows() {
		if r.decay == 0 {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			e := experiment{
				sampler: r.sampler, dtype: tensor.Float64, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, noise: 2, dimensions: n,
				prior: langevin.Gaussian(0.3), dataSize: 50, start: trial.Normal(func(int) float64 { return 1 }),
			}
			cold := e.loadSchedule(t, []float64{0.02}, []float64{0})
			plain := e.loadOptimizer(t, func(decay float64) optimizers.Optimizer {
				return optimizers.Momentum{Decay: r.decay, WeightDecay: decay}
			}, []float64{0.02 * cmp.Or(r.pace, (1+r.decay)/2)})
			for step := range steps {
				trial.Advance(t, cold, 1)
				trial.Advance(t, plain, 1)
				got, want := trial.Values(t, cold, trial.ParameterName, 0, n), trial.Values(t, plain, trial.ParameterName, 0, n)
				for i := range got {
					if !(math.Abs(got[i]-want[i]) <= 1e-13*(1+math.Abs(want[i]))) {
						t.Fatalf("step %d, element %d: got %v, the optimizer %v", step, i, got[i], want[i])
					}
				}
			}
		})
	}
}

// TestSGHMCWithoutMomentum: with friction 1, SGHMC is SGLD.
func TestSGHMCWithoutMomentum(t *testing.T) {
	const n, steps = 257, 20
	e := experiment{
		dtype: tensor.Float64, field: trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}, dimensions: n, dataSize: 50, step: 0.05, temperature: 0.7,
		start: trial.Normal(func(int) float64 { return 1 }),
	}
	var states [2][]float64
	for i, sampler := range []langevin.Sampler{langevin.SGHMC{Friction: 1}, langevin.SGLD{}} {
		e.sampler = sampler
		session := e.load(t)
		trial.Advance(t, session, steps)
		states[i] = trial.Values(t, session, trial.ParameterName, 0, n)
	}
	for i, got := range states[0] {
		if want := states[1][i]; !(math.Abs(got-want) <= 1e-13*(1+math.Abs(want))) {
			t.Fatalf("element %d: got %v, SGLD %v", i, got, want)
		}
	}
}

// TestKineticDistribution: in equilibrium the kinetic temperature has the mean T and the variance
// 2 T^2/d. With much friction its values are nearly independent from step to step.
func TestKineticDistribution(t *testing.T) {
	const n, chains, steps, temperature = 33, 16, 256, 0.7
	for _, sampler := range []langevin.Sampler{langevin.SGHMC{Friction: 1}, langevin.BAOAB{Friction: 6}} {
		k := 0.02
		e := experiment{
			sampler: sampler, field: trial.DiagonalGaussian{Smallest: k, Largest: k}, dimensions: n, chains: chains, dataSize: 10, step: 0.1, temperature: temperature,
			start: trial.Normal(func(int) float64 { return math.Sqrt(temperature / k) }),
		}
		session := e.load(t)
		metric := langevin.KineticPrefix + trial.ParameterName
		trial.Advance(t, session, 2)
		sum, squares := 0.0, 0.0
		for range steps {
			trial.Advance(t, session, 1)
			for chain := range chains {
				score := (session.Metric(chain, metric, session.Steps()-1)/n/temperature - 1) / math.Sqrt(2.0/n)
				sum += score
				squares += score * score
			}
		}
		const readings = chains * steps
		if z := sum / math.Sqrt(readings); !(math.Abs(z) < trial.ZLimit) {
			t.Errorf("%s: the mean score's z is %.2f", sampler.Name(), z)
		}
		// The fourth moment of a chi-square's score is 3 + 12/d.
		if z := (squares/readings - 1) / math.Sqrt((2+12.0/n)/readings); !(math.Abs(z) < trial.ZLimit) {
			t.Errorf("%s: the scores' variance is %.3f: z = %.2f", sampler.Name(), squares/readings, z)
		}
	}
}

// TestUpdatesDoNotAllocate covers all samplers of the suite.
func TestUpdatesDoNotAllocate(t *testing.T) {
	for _, row := range rows() {
		t.Run(row.name, func(t *testing.T) {
			session := givenSession(t, row.sampler, langevin.Laplace(1), 1, 9001)
			if n := testing.AllocsPerRun(5, func() { trial.Advance(t, session, 2) }); n > 0 {
				t.Errorf("%v allocations in two steps", n)
			}
		})
	}
}
