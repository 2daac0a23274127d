package langevin

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// PSGHMC is SGHMC preconditioned like RMSProp, per element (Izmailov, Vikram, Hoffman and Wilson
// 2021, SGHMC-CLR-Prec, whose mass is 1/G). With the gradient of the mean loss g = gU/N, V as in
// PSGLD, and u the velocity in units of sqrt G:
//
//	V     <- m V + (1 - m) g^2,    m = min(Alpha, t/(t+1)) at step t = 0, 1 ..., 1 from FreezeAt
//	G     =  1 / (Lambda + sqrt V)
//	u     <- (1 - a) u - h sqrt(G) gU + sqrt(2 a h T) xi,    u ~ N(0, h T) at the start
//	theta <- theta + sqrt(G) u
//
// Once G is frozen, which must happen within burn-in, it is SGHMC in the coordinates theta/sqrt(G):
// it targets exp(-U/T) with SGHMC's bias at the step size h G. With GammaNone, as published, G
// adapts to the end without the drift that this requires, which biases the samples at any h. A
// frozen G is unstable where V happened to be small when it froze, unless Lambda bounds it. The
// kinetic temperature is computed from u and does not depend on G.
type PSGHMC struct {
	Friction float64 // a, above 0, at most 1; usually 0.1
	Alpha    float64 // memory of V, in [0, 1); usually 0.99
	Lambda   float64 // bounds G by 1/Lambda; usually 1e-5
	Gamma    Gamma   // GammaFrozen, which is usual, or GammaNone
	FreezeAt int     // the step at which GammaFrozen stops adapting V; 0 with GammaNone
}

// Name implements Sampler.
func (PSGHMC) Name() string { return "psghmc" }

// EffectiveStepSize implements EffectiveStepSizer.
func (p PSGHMC) EffectiveStepSize(s *graph.Session, chain int, parameter string, n int, h float64) ([]float64, error) {
	return preconditionedStepSize(s, chain, parameter, n, h/p.Friction, func(v float64) float64 { return 1 / (p.Lambda + math.Sqrt(v)) })
}

// Validate implements Sampler.
func (p PSGHMC) Validate() error {
	switch err := checkBoundedFriction(p.Name(), p.Friction); {
	case err != nil:
		return err
	case p.Gamma != GammaNone && p.Gamma != GammaFrozen:
		return errors.Errorf("langevin: psghmc: Gamma must be %q or %q, got %q", GammaNone, GammaFrozen, p.Gamma)
	}
	return p.metric().check(p.Name())
}

// metric returns the PSGLD that has the same G.
func (p PSGHMC) metric() PSGLD {
	return PSGLD{Alpha: p.Alpha, Lambda: p.Lambda, Gamma: p.Gamma, FreezeAt: p.FreezeAt}
}

// FreezeStep implements Freezer.
func (p PSGHMC) FreezeStep() int { return p.FreezeAt }

// Freeze implements Freezer.
func (p PSGHMC) Freeze(step int) Sampler {
	if p.Gamma == GammaFrozen {
		p.FreezeAt = step
	}
	return p
}

// Update implements Sampler.
func (p PSGHMC) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	return attachMomentum(b, p, in, parameter, gradient, 1-p.Friction/2)
}

func (PSGHMC) states(n int) []momentumState { return []momentumState{{secondMomentSuffix, n, nil}} }

func (p PSGHMC) lower(l *graph.Lowering, u momentumUpdate) (string, tensor.HostKernel, []float64) {
	host := op.UpdateHost(l, l.Shapes[0].Elements(), u, psghmcTile[float32], psghmcTile[float64])
	return "", host, []float64{p.Friction, p.Alpha, p.Lambda, float64(p.metric().freezeAt())}
}

// psghmcTile performs a step of the elements lo to hi, with the preconditioner G = 1/(lambda + sqrt
// V) for the running mean V of squared gradients: u <- (1 - friction) u - rate sqrt(G) g + scale
// xi, and then theta <- theta + sqrt(G) u.
func psghmcTile[T float32 | float64](update momentumUpdate, a *tensor.Args, lo, hi int) float64 {
	rule := update.rule.(PSGHMC)
	s := momentumTileOf[T](update, a, lo, hi)
	second := tensor.Slice[T](a, 1+momentumStates)[lo:hi]
	stay, scale, lambda := T(1-rule.Friction), s.scale(rule.Friction), T(rule.Lambda)
	keep := memory[T](rule.Alpha, rule.metric().freezeAt(), s.start.Step)
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(s.w); from += random.BlockSize {
		w, u, g := s.nextBlock(from, &gradients, &z)
		v := second[from:][:len(w)]
		for i, theta := range w {
			v[i] = T(keep*v[i]) + T(T((1-keep)*g[i])*g[i])
			// T(...) around each product keeps the compiler from fusing it with the sum that
			// follows, which would round differently between processors.
			root := T(math.Sqrt(float64(1 / (lambda + T(math.Sqrt(float64(v[i])))))))
			u[i] = op.Descend(T(stay*u[i]), s.rate, T(root*g[i])) + T(scale*T(z[i]))
			w[i] = theta + T(root*u[i])
		}
	}
	return s.virial
}
