package langevin

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// SGHMC is stochastic gradient Hamiltonian Monte Carlo (Chen, Fox and Guestrin 2014, equation 15
// with a = alpha, b = beta-hat and h = eta), velocities first:
//
//	v     <- (1 - a) v - h gU + sqrt(2 (a - b) h T) xi,    v ~ N(0, h T) at the start
//	theta <- theta + v
//
// The effective step size is h/a. It targets exp(-U/T). On a quadratic U of curvature k the chain
// has the variance T/k (1 - a/2)/(1 - a/2 - hk/4), a relative excess of about hk/4. The noise of
// the minibatch heats by the factor 1 + h Var(gU)/(2 a T); NoiseEstimate compensates for it as far
// as the estimate is right. The kinetic temperature is (1 - a/2) v.v/(h d), which is T where U is
// flat, and equal to the configurational one on average. At T = 0 it is optimizers.Momentum with
// the rate h N and the decay 1 - a, bit for bit.
type SGHMC struct {
	Friction float64 // a, above 0, at most 1; usually 0.1

	// NoiseEstimate is b, from 0 to a: h Var(gU)/(2T), where Var(gU) is the variance of the
	// elements of gU over minibatches. Runs report this number divided by a, by layer, as the
	// noise.
	NoiseEstimate float64

	// NoiseEstimates overrides NoiseEstimate for single layers or parameters.
	NoiseEstimates ByLayer
}

// Name implements Sampler.
func (SGHMC) Name() string { return "sghmc" }

// EffectiveStepSize implements EffectiveStepSizer.
func (s SGHMC) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return slices.Repeat([]float64{h / s.Friction}, n), nil
}

// Validate implements Sampler.
func (s SGHMC) Validate() error {
	switch err := checkBoundedFriction(s.Name(), s.Friction); {
	case err != nil:
		return err
	case !(s.NoiseEstimate >= 0 && s.NoiseEstimate <= s.Friction):
		return errors.Errorf("langevin: sghmc: NoiseEstimate must be 0 to Friction %v, got %v", s.Friction, s.NoiseEstimate)
	}
	return errors.WithMessage(s.NoiseEstimates.check(func(b float64) bool { return b >= 0 && b <= s.Friction }, "0 to Friction"),
		"langevin: sghmc: NoiseEstimates")
}

func (s SGHMC) byLayer() []ByLayer { return []ByLayer{s.NoiseEstimates} }

// Update implements Sampler.
func (s SGHMC) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	s.NoiseEstimate, s.NoiseEstimates = s.NoiseEstimates.of(in.Name, s.NoiseEstimate), ""
	return attachMomentum(b, s, in, parameter, gradient, 1-s.Friction/2)
}

func (SGHMC) states(int) []momentumState { return nil }

func (s SGHMC) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	host := op.UpdateHost(l, l.Shapes[0].Elements(), u, sghmcTile[float32], sghmcTile[float64])
	return "", host, []float64{s.Friction, s.NoiseEstimate}
}

func sghmcTile[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	rule := u.rule.(SGHMC)
	s := momentumTileOf[T](u, a, lo, hi)
	keep, scale := T(1-rule.Friction), s.scale(rule.Friction-rule.NoiseEstimate)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		kernel.SGHMC(w, v, g, z[:], keep, s.rate, scale)
	}
	return s.virial
}
