package langevin

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// OBABO puts halves of friction with noise, O, around a step of velocity Verlet, BAB (Bussi and
// Parrinello 2007; Leimkuhler and Matthews 2015, chapter 7). A step here begins with the last half
// of B of the previous step, whose gradient it computes. The two halves of O that follow are one:
//
//	B  v     <- v - h/2 gU
//	O  v     <- c v + sqrt((1 - c^2) h T) xi,    c = exp(-Friction),    v ~ N(0, h T) at the start
//	B  v     <- v - h/2 gU
//	A  theta <- theta + v
//
// The two halves of B in a step use one gradient, and the samples of theta are OBABO's. Step size,
// friction and effective step size are as in BAOAB.
//
// It targets exp(-U/T). On a quadratic U of curvature k the chain has the variance T/k / (1 -
// hk/4), whatever the friction, and is stable as long as hk is below 4; BAOAB has no such excess.
// The noise of the minibatch heats by the factor 1 + h Var(gU)/(4 T) (1 + c)/(1 - c), which is not
// corrected. The kinetic temperature, of the velocities between A and B, is T where U is flat, and
// equal to the configurational one on average. At T = 0 it is optimizers.Momentum with the decay c
// and the rate h N (1 + c)/2, up to rounding.
type OBABO struct {
	Friction float64 // of one step, above 0; usually 0.1
}

// Name implements Sampler.
func (OBABO) Name() string { return "obabo" }

// EffectiveStepSize implements EffectiveStepSizer.
func (s OBABO) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return exactFrictionStepSize(s.Friction, n, h), nil
}

// Validate implements Sampler.
func (s OBABO) Validate() error { return checkFriction(s.Name(), s.Friction) }

// Update implements Sampler.
func (s OBABO) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	return attachMomentum(b, s, in, parameter, gradient, 1)
}

func (OBABO) states(int) []momentumState { return nil }

func (s OBABO) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	host := op.UpdateHost(l, l.Shapes[0].Elements(), u, obaboTile[float32], obaboTile[float64])
	return "", host, []float64{s.Friction}
}

// obaboTile computes B, O and B at once: v <- c v - (1 + c)/2 rate g + noise, the same pass over
// memory as SGHMC's.
func obaboTile[T float32 | float64](u momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	friction := u.rule.(OBABO).Friction
	s := momentumTileOf[T](u, a, lo, hi)
	c, strength := relaxation(friction, friction)
	keep, rate, scale := T(c), T((1+c)/2)*s.rate, s.scale(strength)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		kernel.SGHMC(w, v, g, z[:], keep, rate, scale)
	}
	return s.virial
}
