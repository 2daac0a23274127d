package mcmc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// checkExpected compares the average of traces with its expectation, in standard errors from the
// effective sample size.
func checkExpected(t *testing.T, name string, chains [][]float64, want float64) {
	t.Helper()
	std, err := diagnostics.MeanStandardError(chains)
	if err != nil {
		t.Fatal(err)
	}
	if z := (meanOf(chains) - want) / std; !(math.Abs(z) < trial.ZLimit) {
		t.Errorf("%s: average %v, want %v +- %v: z = %.1f", name, meanOf(chains), want, std, z)
	}
}

// functionTrace is a trace of a function of the elements of a quantity.
func functionTrace(t *testing.T, traces *langevin.Traces, name string, f func(x []float64) float64, elements ...int) [][]float64 {
	t.Helper()
	var all [][][]float64
	for _, element := range elements {
		all = append(all, traceOf(t, traces, name, element))
	}
	result := make([][]float64, len(all[0]))
	x := make([]float64, len(elements))
	for chain := range result {
		for draw := range all[0][chain] {
			for i := range x {
				x[i] = all[i][chain][draw]
			}
			result[chain] = append(result[chain], f(x))
		}
	}
	return result
}

// samplersFor are exact samplers that find their step sizes themselves.
func samplersFor(leapfrogSteps int) map[string]mcmc.Sampler {
	return map[string]mcmc.Sampler{
		"random walk": mcmc.Metropolis{Proposal: mcmc.RandomWalk{}, StepSize: 1, Warmup: 300},
		"MALA":        mcmc.Metropolis{Proposal: mcmc.MALA{}, StepSize: 0.1, Warmup: 300},
		"HMC":         mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: leapfrogSteps, Jitter: 0.3}, StepSize: 0.1, Warmup: 200, TargetAcceptance: 0.8},
	}
}

// TestCorrelated: the covariance of (A x^2 + 2 B x y + C y^2)/2 is T/(A C - B^2) times C, -B, A.
func TestCorrelated(t *testing.T) {
	f, temperature := trial.CorrelatedGaussian{A: 2, B: 1.2, C: 1}, 0.5
	scale := temperature / (f.A*f.C - f.B*f.B)
	for name, sampler := range samplersFor(5) {
		t.Run(name, func(t *testing.T) {
			traces := exactRun{
				field: f, dimensions: 2, chains: trial.ChainsOf(t, 8), temperature: temperature, sampler: sampler, start: trial.StartAt(0.5),
			}.draw(t, trial.StepsOf(t, 400), 3)
			for i := range 2 {
				checkExpected(t, fmt.Sprint("mean ", i), traceOf(t, traces, "w", i), 0)
			}
			product := func(x []float64) float64 { return x[0] * x[1] }
			checkExpected(t, "xx", functionTrace(t, traces, "w", product, 0, 0), scale*f.C)
			checkExpected(t, "xy", functionTrace(t, traces, "w", product, 0, 1), -scale*f.B)
			checkExpected(t, "yy", functionTrace(t, traces, "w", product, 1, 1), scale*f.A)
		})
	}
}

// TestIllConditioned: variances from 1 to 1/400 in 8 directions, with and without the masses that
// even them out; these allow long steps.
func TestIllConditioned(t *testing.T) {
	f := trial.DiagonalGaussian{Smallest: 1, Largest: 400}
	masses := make([]float64, trial.Classes)
	for i := range masses {
		masses[i] = f.Curvature(i)
	}
	var steps []float64
	for _, hmc := range []mcmc.HMC{
		{LeapfrogSteps: 24, Jitter: 0.3},
		{LeapfrogSteps: 4, Jitter: 0.3, Masses: map[string][]float64{trial.ParameterName: masses}},
	} {
		sampler := mcmc.Metropolis{Proposal: hmc, StepSize: 0.01, Warmup: 200, TargetAcceptance: 0.8}
		traces := exactRun{
			field: f, dimensions: trial.Classes, chains: trial.ChainsOf(t, 8), temperature: 1, sampler: sampler, start: trial.StartAt(0.1),
		}.draw(t, trial.StepsOf(t, 300), 1)
		for i := range trial.Classes {
			checkExpected(t, fmt.Sprint("mean ", i), traceOf(t, traces, "w", i), 0)
			checkExpected(t, fmt.Sprint("variance ", i), functionTrace(t, traces, "w", func(x []float64) float64 { return x[0] * x[0] }, i), 1/f.Curvature(i))
		}
		steps = append(steps, meanOf(traceOf(t, traces, mcmc.TraceStepSize, 0)))
	}
	if steps[1] < 10*steps[0] {
		t.Errorf("step sizes are %v without masses and %v with them", steps[0], steps[1])
	}
}

// TestThousandDimensions: means and variances of 1000 normals, and the distribution of U, half a
// chi-square.
func TestThousandDimensions(t *testing.T) {
	const dimensions, temperature = 1000, 0.7
	f := trial.DiagonalGaussian{Smallest: 0.5, Largest: 2}
	traces := exactRun{
		field: f, dimensions: dimensions, chains: trial.ChainsOf(t, 4), temperature: temperature, start: trial.StartAt(0),
		sampler: mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 8, Jitter: 0.2}, StepSize: 0.1, Warmup: 100},
	}.draw(t, trial.StepsOf(t, 100), 1)
	for class := range trial.Classes {
		var elements []int
		for i := class; i < dimensions; i += trial.Classes {
			elements = append(elements, i)
		}
		mean := func(x []float64) float64 { return sumOf(x, identity) / float64(len(x)) }
		checkExpected(t, fmt.Sprint("mean of class ", class), functionTrace(t, traces, "w", mean, elements...), 0)
		checkExpected(t, fmt.Sprint("variance of class ", class),
			functionTrace(t, traces, "w", func(x []float64) float64 { return sumOf(x, square) / float64(len(x)) }, elements...), temperature/f.Curvature(class))
	}
	potential := traceOf(t, traces, mcmc.TracePotential, 0)
	checkExpected(t, "U", potential, dimensions*temperature/2)
	for _, chain := range potential {
		for i := range chain {
			chain[i] = (chain[i] - dimensions*temperature/2) * (chain[i] - dimensions*temperature/2)
		}
	}
	checkExpected(t, "variance of U", potential, dimensions*temperature*temperature/2)
	if rate := meanOf(traceOf(t, traces, mcmc.TraceAcceptance, 0)); rate < 0.55 || rate > 0.9 {
		t.Errorf("%.3f of the proposals were accepted, want about the optimum of 0.651, or more after a warm-up as short as this", rate)
	}
}

func sumOf(x []float64, f func(x float64) float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += f(v)
	}
	return sum
}

// ray is the exponential distribution as a graph: U = theta where theta >= 0, and not a number
// elsewhere.
func ray(b *graph.Builder, w *graph.Node) *graph.Node {
	return b.Apply(op.Sum{}, b.Apply(op.Restrict{High: math.Inf(1)}, w))
}

// TestEdgeOfSupport: proposals where the potential is not a number are rejected, and the run
// continues. The moments match the exponential distribution of mean T, and quantities follow the
// draws.
func TestEdgeOfSupport(t *testing.T) {
	const temperature = 0.6
	for name, sampler := range map[string]mcmc.Sampler{
		"random walk": mcmc.Metropolis{Proposal: mcmc.RandomWalk{}, StepSize: 0.7},
		"MALA":        mcmc.Metropolis{Proposal: mcmc.MALA{}, StepSize: 0.2},
		"HMC":         mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 3, Jitter: 0.3}, StepSize: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.New(tensor.Float64)
			w := b.Parameter("w", trial.StartAt(1), 2)
			potential, sum := ray(b, w), trial.SumOfSquares(b, w)
			quantities := []mcmc.Quantity{{"w", w}, {"sum of squares", sum}}
			chains, err := sampler.Attach(b, mcmc.Target{Potential: potential, Temperature: temperature, Quantities: quantities})
			if err != nil {
				t.Fatal(err)
			}
			session := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: trial.ChainsOf(t, 8)}, 0)
			traces := drawn(t, session, chains, trial.StepsOf(t, 500), 2)
			for i := range 2 {
				checkExpected(t, "mean", traceOf(t, traces, "w", i), temperature)
				checkExpected(t, "square", functionTrace(t, traces, "w", func(x []float64) float64 { return x[0] * x[0] }, i), 2*temperature*temperature)
			}
			squares := traceOf(t, traces, "sum of squares", 0)
			for chain, want := range functionTrace(t, traces, "w", func(x []float64) float64 { return x[0]*x[0] + x[1]*x[1] }, 0, 1) {
				for i := range want {
					if math.Abs(squares[chain][i]-want[i]) > 1e-12 {
						t.Fatalf("chain %d, draw %d: the sum of squares is %v, want %v", chain, i, squares[chain][i], want[i])
					}
				}
			}
		})
	}
}

// TestStartOutsideSupport: a chain that starts where there is no density is an error.
func TestStartOutsideSupport(t *testing.T) {
	for name, sampler := range samplersFor(3) {
		b := graph.New(tensor.Float64)
		w := b.Parameter("w", trial.StartAt(-1), 2)
		chains, err := sampler.Attach(b, mcmc.Target{Potential: ray(b, w), Temperature: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = chains.Sample(context.Background(), trial.Load(t, b, graph.LoadOptions{}, 1), 1, 1)
		if fault := new(graph.NotFinite); !errors.As(err, &fault) || !strings.Contains(fault.Label, "restrict") {
			t.Errorf("%s: error %v, want one that names what is not finite", name, err)
		}
	}
}

// TestMixtureCoverage: parallel chains that start in one place find both modes of a mixture, and
// their shares.
func TestMixtureCoverage(t *testing.T) {
	f := twins{3}
	for name, sampler := range map[string]mcmc.Sampler{
		"random walk": mcmc.Metropolis{Proposal: mcmc.RandomWalk{}, StepSize: 5},
		"HMC":         mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 6, Jitter: 0.5}, StepSize: 0.6},
	} {
		traces := exactRun{
			field: f, dimensions: 1, chains: trial.ChainsOf(t, 16), temperature: 1, sampler: sampler, start: trial.StartAt(3),
		}.draw(t, trial.StepsOf(t, 600), 5)
		checkExpected(t, name+": share", functionTrace(t, traces, "w", func(x []float64) float64 { return heaviside(x[0]) }, 0), 2./3)
		checkExpected(t, name+": mean", traceOf(t, traces, "w", 0), f.Distance/3)
	}
}

// TestTargetsOfMetropolis checks the field of these tests.
func TestTargetsOfMetropolis(t *testing.T) { trial.CheckFields(t, twins{1.5}) }

// twins is the mixture of N(Distance, 1), with the weight 2/3, and N(-Distance, 1).
type twins struct{ Distance float64 }

func (f twins) At(theta, slope []float64) float64 {
	u := 0.0
	for i, x := range theta {
		right, left := 2*math.Exp(-(x-f.Distance)*(x-f.Distance)/2), math.Exp(-(x+f.Distance)*(x+f.Distance)/2)
		u -= math.Log(right + left)
		slope[i] = (right*(x-f.Distance) + left*(x+f.Distance)) / (right + left)
	}
	return u
}

func (f twins) Potential(b *graph.Builder, w *graph.Node) *graph.Node {
	logarithm := func(center, logRatio float64) *graph.Node {
		squares := b.Apply(op.Squared{}, b.Apply(op.Scale{Factor: 1, Offset: -center}, w))
		return b.Apply(op.Scale{Factor: -0.5, Offset: math.Log(logRatio)}, squares)
	}
	return b.Apply(op.Negate{}, b.Apply(op.Sum{}, b.Apply(op.LogAddExp{}, logarithm(f.Distance, 2), logarithm(-f.Distance, 1))))
}

func identity(x float64) float64 { return x }
func square(x float64) float64   { return x * x }
