package langevin_test

import (
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// chainMod is an initializer of a state that begins with the chain's number modulo n.
func chainMod(n uint32) graph.Initializer {
	return func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
		values[0] = float64(chain % n)
	}
}

// TestAttachScaled: each chain has the bits of one with its own step sizes. MatchedFriction divides
// these by masses, which rounds them in another order.
func TestAttachScaled(t *testing.T) {
	h, temperatures, factors := []float64{1e-3, 3e-3, 2e-4}, []float64{0, 0.7, 1.3}, []float64{1, 0.5, 0.125}
	for _, sampler := range []langevin.Sampler{
		langevin.SGLD{}, langevin.SGHMC{Friction: 0.1}, langevin.OBABO{Friction: 0.2},
		langevin.PSGLD{Alpha: 0.6, Lambda: 0.05, Gamma: langevin.GammaFrozen, FreezeAt: 3},
		langevin.MatchedFriction{Friction: 0.05, Masses: langevin.MassesPrior},
	} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
			load := func(h, factors []float64) *graph.Session {
				b := graph.New(dtype)
				narrow := b.Parameter("a.weight", trial.Normal(func(int) float64 { return 0.1 }), 257)
				wide := b.Parameter("b.weight", trial.Normal(func(int) float64 { return 1 }), 31)
				field := trial.DiagonalGaussian{Smallest: 0.5, Largest: 3}
				loss := trial.Target{Field: field, DataSize: 64, Stream: b.Stream()}.Loss(b, narrow)
				loss = b.Apply(op.Add{}, loss, trial.Target{Field: field, DataSize: 64, Stream: b.Stream()}.Loss(b, wide))
				posterior := langevin.Posterior{DataSize: 64, Prior: langevin.Gaussian(0.25), Layers: map[string]langevin.Prior{"b": langevin.Gaussian(1)}}
				var state *graph.Node
				if factors != nil {
					state = b.State("factor", chainMod(3), 1)
				}
				if err := langevin.AttachScaled(b, sampler, posterior, loss, h, temperatures, factors, state); err != nil {
					t.Fatal(err)
				}
				return trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, Chains: 6}, 1)
			}
			scaled := load(h, factors)
			trial.Advance(t, scaled, 7)
			for number, factor := range factors {
				own := slices.Clone(h)
				for i := range own {
					own[i] *= factor
				}
				plain := load(own, nil)
				trial.Advance(t, plain, 7)
				for _, chain := range []int{number, number + 3} {
					for name, n := range map[string]int{"a.weight": 257, "b.weight": 31} {
						tolerance := 0.0
						if _, ok := sampler.(langevin.MatchedFriction); ok {
							tolerance = 1e-5
						}
						got, want := trial.Values(t, scaled, name, chain, n), trial.Values(t, plain, name, chain, n)
						if !floats.EqualApprox(got, want, tolerance) {
							t.Errorf("%s, %v: %s of chain %d is not that of step sizes times %v", sampler.Name(), dtype, name, chain, factor)
						}
					}
				}
			}
		}
	}
}

// TestAttachScaledRefuses factors of 0, and a state that is missing.
func TestAttachScaledRefuses(t *testing.T) {
	for want, attach := range map[string]func(b *graph.Builder, loss *graph.Node) error{
		"factors must be positive": func(b *graph.Builder, loss *graph.Node) error {
			state := b.State("factor", nil, 1)
			return langevin.AttachScaled(b, langevin.SGLD{}, langevin.Posterior{DataSize: 1}, loss, []float64{1}, []float64{1}, []float64{1, 0}, state)
		},
		"nil": func(b *graph.Builder, loss *graph.Node) error {
			return langevin.AttachScaled(b, langevin.SGLD{}, langevin.Posterior{DataSize: 1}, loss, []float64{1}, []float64{1}, []float64{1}, nil)
		},
	} {
		b := graph.New(tensor.Float32)
		w := b.Parameter("w", nil, 4)
		err := attach(b, trial.DiagonalGaussian{Smallest: 1, Largest: 1}.Potential(b, w))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
