package mcmc_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// exactRun is an exact sampler on a field, of one parameter "w.weight", which is traced as "w".
type exactRun struct {
	sampler     mcmc.Sampler
	field       trial.Field
	dimensions  int
	chains      int
	temperature float64
	start       graph.Initializer
}

// build makes the graph. The stream is the number of the first one that the sampler takes.
func (e exactRun) build(t testing.TB) (b *graph.Builder, chains mcmc.Chains, stream uint16) {
	t.Helper()
	b = graph.New(tensor.Float64)
	w := b.Parameter(trial.ParameterName, e.start, e.dimensions)
	stream = b.Stream()
	potential := e.field.Potential(b, w)
	chains, err := e.sampler.Attach(b, mcmc.Target{
		Potential: potential, Temperature: e.temperature, Quantities: []mcmc.Quantity{{Name: "w", Node: w}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, chains, stream + 1
}

func (e exactRun) load(t testing.TB, o graph.LoadOptions, threads int) (*graph.Session, mcmc.Chains) {
	t.Helper()
	b, chains, _ := e.build(t)
	if o.Chains == 0 {
		o.Chains = e.chains
	}
	return trial.Load(t, b, o, threads), chains
}

func (e exactRun) draw(t testing.TB, draws, thinning int) *langevin.Traces {
	t.Helper()
	session, chains := e.load(t, graph.LoadOptions{Seed: trial.RunSeed}, 0)
	return drawn(t, session, chains, draws, thinning)
}

func drawn(t testing.TB, s *graph.Session, chains mcmc.Chains, draws, thinning int) *langevin.Traces {
	t.Helper()
	traces, err := chains.Sample(context.Background(), s, draws, thinning)
	if err != nil {
		t.Fatal(err)
	}
	return traces
}

func traceOf(t testing.TB, traces *langevin.Traces, name string, element int) [][]float64 {
	t.Helper()
	chains, err := traces.Of(name, element)
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

// scoreOf is how many standard errors lie between the average of f over all draws and its
// expectation, for chains that start as draws of the target: averages of chains are independent.
func scoreOf(chains [][]float64, f func(x float64) float64, want float64) float64 {
	averages := make([]float64, len(chains))
	for i, chain := range chains {
		for _, x := range chain {
			averages[i] += f(x) / float64(len(chain))
		}
	}
	mean, std := stat.MeanStdDev(averages, nil)
	return (mean - want) / (std / math.Sqrt(float64(len(chains))))
}

// equilibrium is a target of one element with the moments that its draws should have, and an
// initializer of such draws.
type equilibrium struct {
	field       trial.Field
	curvature   float64 // at the mode
	temperature float64
	moments     map[string]expectation
	start       graph.Initializer
}

type expectation struct {
	of   func(x float64) float64
	want float64
}

// normalLine is the equilibrium of the potential k x^2/2.
func normalLine(k, temperature float64) equilibrium {
	variance := temperature / k
	return equilibrium{
		field: trial.DiagonalGaussian{Smallest: k, Largest: k}, curvature: k, temperature: temperature,
		start: trial.Normal(func(int) float64 { return math.Sqrt(variance) }),
		moments: map[string]expectation{
			"mean":     {identity, 0},
			"variance": {square, variance},
			"tail":     {func(x float64) float64 { return heaviside(x - 1.5*math.Sqrt(variance)) }, 1 - distuv.UnitNormal.CDF(1.5)},
		},
	}
}

// logGammaLine is the equilibrium of logGamma: x is the logarithm of T X, X from the gamma
// distribution of shape Shape/T.
func logGammaLine(shape, temperature float64) equilibrium {
	gamma := distuv.Gamma{Alpha: shape / temperature, Beta: 1}
	mean := mathext.Digamma(gamma.Alpha) + math.Log(temperature)
	variance := trigamma(gamma.Alpha)
	low, high := math.Log(temperature*gamma.Quantile(0.1)), math.Log(temperature*gamma.Quantile(0.9))
	return equilibrium{
		field: trial.LogGamma{Shape: shape}, curvature: shape, temperature: temperature,
		start: func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
			random.Uniforms(values, 0, random.Address{Seed: seed, Chain: chain, Step: 1 << 40, Stream: stream})
			for i, u := range values {
				values[i] = math.Log(temperature * gamma.Quantile(u-0x1p-25))
			}
		},
		moments: map[string]expectation{
			"mean":     {identity, mean},
			"variance": {func(x float64) float64 { return (x - mean) * (x - mean) }, variance},
			"lower":    {func(x float64) float64 { return heaviside(low - x) }, 0.1},
			"upper":    {func(x float64) float64 { return heaviside(x - high) }, 0.1},
			"gamma":    {math.Exp, shape},
		},
	}
}

// trigamma is the sum over k >= 0 of 1/(k+a)^2.
func trigamma(a float64) float64 {
	const terms = 1000
	sum := 0.0
	for k := range terms {
		sum += 1 / ((a + float64(k)) * (a + float64(k)))
	}
	end := a + terms
	return sum + 1/end + 1/(2*end*end)
}

func heaviside(x float64) float64 {
	if x > 0 {
		return 1
	}
	return 0
}

// worst is the largest score of the moments.
func (e equilibrium) worst(chains [][]float64) (name string, z float64) {
	for moment, m := range e.moments {
		if score := math.Abs(scoreOf(chains, m.of, m.want)); !(score <= z) {
			name, z = moment, score
		}
	}
	return name, z
}
