package trial

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// GaussianTest tests the distribution of a custom sampler on a Gaussian with Classes different
// curvatures, to which a prior contributes: noise of a wrong scale, a prior that is left out or
// counted twice, and a misplaced number of examples change the variances by far more than the
// test's tolerance of some 6 %.
type GaussianTest struct {
	Sampler               langevin.Sampler
	StepSize, Temperature float64 // h and T
	Steps                 int     // enough to forget the start, several times 1/h steps for SGLD
	// Variance returns the stationary variance of the discretised chain where U has the curvature
	// k, which is from 1.5 to 4.5. For SGLD it is T/k / (1 - h k/2).
	Variance func(k float64) float64
}

// The size of the test, and the posterior's prior, a standard normal of curvature 1.
const (
	gaussianElements = 20_000
	gaussianChains   = 4
	gaussianData     = 10 // N
)

// Run reports each curvature whose mean is not 0, or whose variance is not the Variance, by more
// than ZLimit standard errors.
func (g GaussianTest) Run(t testing.TB) {
	t.Helper()
	for _, wrong := range g.failures(t) {
		t.Error(wrong)
	}
}

func (g GaussianTest) failures(t testing.TB) (all []string) {
	t.Helper()
	field := DiagonalGaussian{Smallest: 0.5, Largest: 3.5}
	b := graph.New(tensor.Float64)
	loss := Target{Field: field, DataSize: gaussianData}.Loss(b, b.Parameter("w", Normal(func(int) float64 { return 1 }), gaussianElements))
	posterior := langevin.Posterior{DataSize: gaussianData, Prior: langevin.Gaussian(1)}
	if err := langevin.Attach(b, g.Sampler, posterior, loss, []float64{g.StepSize}, []float64{g.Temperature}); err != nil {
		t.Fatal(err)
	}
	s := Load(t, b, graph.LoadOptions{Seed: 1, Chains: ChainsOf(t, gaussianChains)}, 2)
	Advance(t, s, StepsOf(t, g.Steps))
	var sums, squares [Classes]float64
	for chain := range s.Chains() {
		for i, v := range Values(t, s, "w", chain, gaussianElements) {
			sums[i%Classes] += v
			squares[i%Classes] += v * v
		}
	}
	n := float64(s.Chains()*gaussianElements) / Classes
	for i := range Classes {
		k := field.Curvature(i) + 1
		mean, variance, want := sums[i]/n, squares[i]/n, g.Variance(k)
		if !(math.Abs(mean) <= ZLimit*math.Sqrt(want/n)) {
			all = append(all, fmt.Sprintf("%s: curvature %.3g: mean %.4g, want 0 +- %.1g", g.Sampler.Name(), k, mean, math.Sqrt(want/n)))
		}
		if sd := want * math.Sqrt(2/n); !(math.Abs(variance-want) <= ZLimit*sd) {
			all = append(all, fmt.Sprintf("%s: curvature %.3g: variance %.4g, want %.4g +- %.1g", g.Sampler.Name(), k, variance, want, sd))
		}
	}
	return all
}
