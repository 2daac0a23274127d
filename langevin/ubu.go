package langevin

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// UBU splits Langevin dynamics into the kick B and everything else, U: drift, friction and noise
// together, solved exactly (Sanz-Serna and Zygalakis 2021; on minibatches Paulin, Whalley, Chada
// and Leimkuhler 2024, arXiv 2410.19780). A step here goes from one gradient to the next, so that
// the two halves of U around the paper's theta are one:
//
//	B  v     <- v - h gU
//	U  u     <- v
//	   v     <- c u + sqrt((1 - c^2) h T) xi,    c = exp(-Friction),    v ~ N(0, h T) at the start
//	   theta <- theta + k (u + v) + sqrt(r h T) eta
//
// with k = tanh(a/2)/a and r = (2a - 4 tanh(a/2))/a^2, where a is the Friction. xi and eta are
// drawn from N(0, 1), eta from the second step on. This is BAOAB except for k, which is 1/2 -
// a^2/24 for small a, and r, which is a/6. Step size, friction and effective step size are as
// there.
//
// It targets exp(-U/T). On a quadratic U the chain is stable as long as q, h times the curvature,
// is below 4. For small a its variance is (1 - q/6)/(1 - q/4) times the target's, an excess of
// q/12, where BAOAB has none. The samples are the theta at which gradients are computed; the
// variance of the paper's samples, half a U later, is 1 - q/6 times the target's. Minibatches heat
// as in BAOAB. The paper draws minibatches in epochs, every second of which is the previous one in
// reverse order; op.Symmetric does this. At T = 0 it is optimizers.Momentum with the decay c and
// the rate h N (1 - c)/a, up to rounding.
type UBU struct {
	Friction float64 // of one step, above 0; usually 0.1
}

// Name implements Sampler.
func (UBU) Name() string { return "ubu" }

// EffectiveStepSize implements EffectiveStepSizer.
func (s UBU) EffectiveStepSize(_ *graph.Session, _ int, _ string, n int, h float64) ([]float64, error) {
	return exactFrictionStepSize(s.Friction, n, h), nil
}

// Validate implements Sampler.
func (s UBU) Validate() error { return checkFriction(s.Name(), s.Friction) }

// Update implements Sampler.
func (s UBU) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	return attachMomentum(b, s, in, parameter, gradient, 1)
}

func (UBU) states(int) []momentumState { return nil }

func (UBU) kickFirst() bool { return true }

func (s UBU) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	drift, positionNoise := ubuCoefficients(s.Friction)
	return "", kickDriftUpdate{u, s.Friction, drift, positionNoise}.host(l), []float64{s.Friction, drift, positionNoise}
}

// ubuCoefficients returns the coefficients of theta's move over a time of 1 in which only friction
// and noise change v: drift times the sum of v before and v after, plus noise of variance
// positionNoise h T.
func ubuCoefficients(friction float64) (drift, positionNoise float64) {
	x := friction / 2
	drift = math.Tanh(x) / friction
	if friction > 0.1 {
		return drift, (2*friction - 4*math.Tanh(x)) / (friction * friction)
	}
	square := x * x // in a - 2 tanh x all cancels but x^3 and its next powers
	return drift, x * (1./3 - square*(2./15-square*(17./315-square*62./2835)))
}
