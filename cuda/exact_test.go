package cuda_test

import (
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// TestExactSamplersAreTheHosts makes proposals on both devices, in float64. The same proposals must
// be accepted, and all numbers be equal up to rounding.
func TestExactSamplersAreTheHosts(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	host := tensor.NewHost(1)
	defer host.Close()
	masses := make([]float64, 6)
	for i := range masses {
		masses[i] = 1 + float64(i)/4
	}
	for name, m := range map[string]mcmc.Sampler{
		"random walk":       mcmc.Metropolis{Proposal: mcmc.RandomWalk{}, StepSize: 0.002},
		"mala":              mcmc.Metropolis{Proposal: mcmc.MALA{}, StepSize: 0.0005, Warmup: 3},
		"mala on minibatch": mcmc.Metropolis{Proposal: mcmc.MALA{Test: mcmc.AcceptanceMinibatch}, StepSize: 0.0005},
		"hmc":               mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 2, Jitter: 0.3}, StepSize: 0.02, Warmup: 2},
		"hmc with masses":   mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 2, Masses: map[string][]float64{"b.weight": masses}}, StepSize: 0.02},
		"mclmc":             mcmc.Unadjusted{Dynamics: mcmc.MCLMC{Friction: 0.1, EnergyVariance: 1e-3}, StepSize: 40, Warmup: 3},
	} {
		for priorName, prior := range map[string]langevin.Prior{"student": langevin.StudentT(3, 1), "mixture": langevin.ScaleMixture(0.5, 1, 0.1)} {
			u := update{name + ", " + priorName, func(b *graph.Builder) {
				posterior := langevin.Posterior{DataSize: 3, Prior: prior, Layers: map[string]langevin.Prior{"a": langevin.Laplace(1), "c": langevin.Gaussian(1)}}
				loss := quadratic(b)
				target := mcmc.Target{Potential: posterior.Potential(b, loss), Temperature: 1, Quantities: []mcmc.Quantity{{Name: "loss", Node: loss}}}
				// An error is the builder's too, whose Compile returns it.
				_, _ = m.Attach(b, target)
			}, 0, ""}
			t.Run(u.name, func(t *testing.T) { compareUpdates[float64](t, u, device, host, 1e-9) })
		}
	}
}

// TestKroneckerFactorsAreTheHosts trains a small network of a convolution and a linear layer, each
// with both factors.
func TestKroneckerFactorsAreTheHosts(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	host := tensor.NewHost(1)
	defer host.Close()
	u := update{"ksgld", func(b *graph.Builder) {
		network := layers.Sequential{layers.Conv2D{Filters: 5, Kernel: 3}, layers.Tanh{}, layers.MaxPool{Window: 2}, layers.Flatten{}, layers.Linear{Outputs: 4}}
		x := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(3, 2, 9, 10)}, b.Header())
		labels := b.Data("labels", tensor.Int32, 3)
		posterior := langevin.Posterior{DataSize: 100, Prior: langevin.Gaussian(0.3)}
		sampler := langevin.KSGLD{Alpha: 0.9, Damping: 0.1, Refresh: 2, FreezeAt: 3}
		// An error is the builder's too, whose Compile returns it.
		_ = langevin.Attach(b, sampler, posterior, b.Apply(op.CrossEntropy{}, network.Apply(b, x), labels), []float64{1e-5}, []float64{1})
	}, 0, ""}
	compareUpdates[float64](t, u, device, host, 1e-9)
	// In float32 the inverses of the factors lose digits.
	compareUpdates[float32](t, u, device, host, 1e-3)
}
