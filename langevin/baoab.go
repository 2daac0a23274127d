package langevin

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// BAOAB splits Langevin dynamics into the kick B, the drift A, and friction with noise O, each
// solved exactly (Leimkuhler and Matthews 2013). The two halves of B around a step's end are one
// kick with one gradient:
//
//	B  v     <- v - h gU
//	A  theta <- theta + v/2
//	O  v     <- c v + sqrt((1 - c^2) h T) xi,    c = exp(-Friction),    v ~ N(0, h T) at the start
//	A  theta <- theta + v/2
//
// In the paper's notation, with masses of 1, the time step e and the friction gamma: h = e^2, v = e
// p, Friction = gamma e. The effective step size is (h/2) (1 + c)/(1 - c): about h/Friction when
// Friction is small, h/2 when it is large.
//
// It targets exp(-U/T). On a quadratic U the variance is exactly the target's as long as h times
// the curvature is below 4, and the variance of v is exactly h T. Elsewhere the bias is of order h,
// and of order h^2 at large friction. The noise of the minibatch heats by about the factor 1 + h
// Var(gU)/(2 T Friction) when Friction is small. The kinetic temperature is the mean of v.v/(h d)
// before B and after it. At T = 0 it is optimizers.Momentum with the decay c and the rate h N (1 +
// c)/2, up to rounding.
type BAOAB struct {
	Friction float64 // of one step, above 0; usually 0.1
}

// Name implements Sampler.
func (BAOAB) Name() string { return "baoab" }

// EffectiveStepSize implements EffectiveStepSizer.
func (s BAOAB) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return exactFrictionStepSize(s.Friction, n, h), nil
}

// Validate implements Sampler.
func (s BAOAB) Validate() error { return checkFriction(s.Name(), s.Friction) }

// Update implements Sampler.
func (s BAOAB) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	return attachMomentum(b, s, in, parameter, gradient, 1)
}

func (BAOAB) states(int) []momentumState { return nil }

func (BAOAB) kickFirst() bool { return true }

func (s BAOAB) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	return "", kickDriftUpdate{u, s.Friction, 0.5, 0}.host(l), []float64{s.Friction}
}

// kickDriftUpdate performs the kick B and then solves friction exactly for v. theta moves by drift
// times the sum of v before and v after friction, plus separate noise of variance positionNoise h
// T. BAOAB has drift 1/2 and no separate noise; UBU has both. A further input of the update, if
// there is one, multiplies the force.
type kickDriftUpdate struct {
	momentumUpdate
	friction, drift, positionNoise float64
}

func (u kickDriftUpdate) host(l *graph.Lowering) tensor.HostKernel {
	return op.UpdateHost(l, l.Shapes[0].Elements(), u, kickDriftTile[float32], kickDriftTile[float64])
}

// kickDriftTile takes theta's separate noise from the stream of the initial velocities, which is
// unused after the first step.
func kickDriftTile[T float32 | float64](u kickDriftUpdate, a *tensor.Args, lo, hi int) float64 {
	s := momentumTileOf[T](u.momentumUpdate, a, lo, hi)
	c, strength := relaxation(u.friction, u.friction)
	keep, rate, scale, drift, spread := T(c), s.rate, s.scale(strength), T(u.drift), s.scale(u.positionNoise/2)
	if u.more > 0 {
		rate = T(rate * tensor.Slice[T](a, 1+momentumStates)[0])
	}
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, v, g := s.nextBlock(from, &gradients, &z)
		// B, A, O and A in one pass: both A move theta by drift times v, before and after friction.
		kernel.BAOAB(w, v, g, z[:], keep, rate, scale, drift)
		// z has been used: draw it again, from another stream, for theta's separate noise.
		if u.positionNoise > 0 && s.start.Step > 0 && s.temperature > 0 {
			random.NormalBlock(s.start, s.first+from/random.BlockSize, len(w), &z)
			for i := range w {
				w[i] += T(spread * T(z[i]))
			}
		}
	}
	return s.virial
}

// relaxation solves dv = -friction v dt + sqrt(2 noise h T) dW exactly over a time of 1: v is
// multiplied by keep = exp(-friction), and gets noise of variance 2 h T strength.
func relaxation(friction, noise float64) (keep, strength float64) {
	if friction == 0 {
		return 1, noise
	}
	return math.Exp(-friction), noise * -math.Expm1(-2*friction) / (2 * friction)
}

// elementRelaxation is relaxation with only one exponential, for a friction of each element. The
// results differ in their last bits.
func elementRelaxation(friction, noise float64) (keep, strength float64) {
	if friction == 0 {
		return 1, noise
	}
	change := math.Expm1(-friction) // keep - 1
	return 1 + change, noise * -float64(change*(2+change)) / (2 * friction)
}
