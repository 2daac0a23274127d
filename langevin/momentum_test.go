package langevin_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// momentumRows are the suite's rows of the samplers with momentum. SGNHT with one chi for all
// elements, CCAdL and SMILE, whose rules are not per element, are in files of their own.
func momentumRows() []row {
	sghmc := langevin.SGHMC{Friction: 0.3, NoiseEstimate: 0.1}
	baoab, obabo, ubu := langevin.BAOAB{Friction: 0.4}, langevin.OBABO{Friction: 0.4}, langevin.UBU{Friction: 0.4}
	euler := langevin.SGNHT{Friction: 0.25, Splitting: langevin.SplittingEuler, PerElement: true, Coupling: 0.02}
	badodab := langevin.SGNHT{Friction: 0.25, Splitting: langevin.SplittingBADODAB, PerElement: true, Coupling: 0.02}
	c := math.Exp(-baoab.Friction)
	momentum := func(decay float64) optimizers.Optimizer { // 1 - 0.25 has no rounding error
		return optimizers.Momentum{Decay: 1 - euler.Friction, WeightDecay: decay}
	}
	return append([]row{
		{
			name: "SGHMC", sampler: sghmc, rule: sghmcRule(sghmc), wrong: wrongSGHMC(sghmc), inertia: true,
			// v is (1 - a) sqrt(h T) times the start and sqrt(2 (a - b) h T) times the noise.
			still: square(1-sghmc.Friction)/2 + sghmc.Friction - sghmc.NoiseEstimate,
			plain: func(decay float64) optimizers.Optimizer {
				return optimizers.Momentum{Decay: 1 - sghmc.Friction, WeightDecay: decay}
			},
			sampling: sghmc, preconditioner: ones, expected: func(float64) float64 { return 1 },
			chain: processOf(sghmc),
		},
		{
			name: "BAOAB", sampler: baoab, rule: baoabRule(baoab), wrong: wrongBAOAB(baoab), inertia: true,
			// The start moves by (1 + c)/2 of itself, the noise by half.
			still:    square(1+c)/8 + (1-c*c)/8,
			sampling: baoab, preconditioner: ones, expected: func(float64) float64 { return 1 },
			chain: processOf(baoab), decay: c,
		},
		{
			name: "OBABO", sampler: obabo, rule: obaboRule(obabo), wrong: wrongOBABO(obabo), inertia: true,
			// The start and the noise move by c^2 and 1 - c^2 of h T.
			still:    0.5,
			sampling: obabo, preconditioner: ones, expected: func(float64) float64 { return 1 },
			chain: processOf(obabo), decay: c,
		},
		{
			name: "UBU", sampler: ubu, rule: ubuRule(ubu), wrong: wrongUBU(ubu), inertia: true,
			// The start moves by (1 - c)/a of itself, the noise by (1 - c)^2/a over its deviation.
			still:    square(1-c)/square(ubu.Friction)/2 + square(square(1-c)/ubu.Friction)/(1-c*c)/2,
			sampling: ubu, preconditioner: ones, expected: func(float64) float64 { return 1 },
			chain: processOf(ubu), decay: c, pace: (1 - c) / ubu.Friction,
		},
		{
			name: "SGNHT, Euler per element", sampler: euler, rule: eulerRule(euler), wrong: wrongSGNHT(euler, eulerRule), inertia: true,
			still: square(1-euler.Friction)/2 + euler.Friction, plain: momentum,
		},
		{
			name: "SGNHT, BADODAB per element", sampler: badodab, rule: badodabRule(badodab), wrong: wrongBADODAB(badodab), inertia: true,
			decay: math.Exp(-badodab.Friction),
		},
		{
			name: "SGNHT, Euler", sampler: langevin.SGNHT{Friction: 0.25, Splitting: langevin.SplittingEuler, Coupling: 0.02}, inertia: true,
			plain: momentum,
		},
		{
			name: "SGNHT, BADODAB", sampler: langevin.SGNHT{Friction: 0.25, Splitting: langevin.SplittingBADODAB, Coupling: 0.02}, inertia: true,
			decay: math.Exp(-badodab.Friction),
		},
		{
			name: "CCAdL", sampler: langevin.CCAdL{Friction: 0.25, Alpha: 0.6, Coupling: 0.02}, inertia: true,
			decay: math.Exp(-0.25),
		},
		{
			name: "SMILE", sampler: langevin.SMILE{Friction: 0.25}, inertia: true,
			decay: math.Exp(-0.25),
		},
	}, psghmcRows()...)
}

// chainOf is a sampler's chain.
func chainOf(sampler langevin.Sampler, a *mat.Dense, h, temperature, noise float64) linear {
	switch s := sampler.(type) {
	case langevin.SGHMC:
		return still(a).kick(1-s.Friction, h, noise, 2*(s.Friction-s.NoiseEstimate)*h*temperature).drift(1)
	case langevin.PSGHMC: // in units of sqrt G
		return chainOf(langevin.SGHMC{Friction: s.Friction}, a, h, temperature, noise)
	case langevin.BAOAB:
		c := math.Exp(-s.Friction)
		return still(a).kick(1, h, noise, 0).drift(0.5).relax(c, (1-c*c)*h*temperature).drift(0.5)
	case langevin.UBU:
		return still(a).kick(1, h, noise, 0).unforced(s.Friction, 1, h, temperature)
	case langevin.OBABO:
		// Both halves of B have the same minibatch's noise, which O lets through by c and by 1.
		c := math.Exp(-s.Friction)
		chain := still(a).kick(1, h/2, 0, 0).relax(c, (1-c*c)*h*temperature).kick(1, h/2, 0, 0)
		return chain.relax(1, square((1+c)/2*h*noise)).drift(1)
	default:
		panic("there is no theory of " + sampler.Name())
	}
}

// begun returns v at the beginning of the step.
func (e element) begun() float64 {
	if e.step == 0 {
		*e.memory = math.Sqrt(e.h*e.temperature) * e.start
	}
	return *e.memory
}

func sghmcRule(s langevin.SGHMC) rule {
	return func(e element) float64 {
		v := (1-s.Friction)*e.begun() - e.h*e.n*e.g + math.Sqrt(2*(s.Friction-s.NoiseEstimate)*e.h*e.temperature)*e.xi
		*e.memory = v
		return e.theta + v
	}
}

// resting is the rule with velocities that start at 0.
func resting(r rule) rule {
	return func(e element) float64 {
		e.start = 0
		return r(e)
	}
}

// unscaled is the rule with the gradient of U/N instead of U.
func unscaled(r rule) rule {
	return func(e element) float64 {
		e.g /= e.n
		return r(e)
	}
}

func wrongSGHMC(s langevin.SGHMC) map[string]rule {
	right := sghmcRule(s)
	vary := func(a, b float64) rule {
		return sghmcRule(langevin.SGHMC{Friction: s.Friction * a, NoiseEstimate: s.NoiseEstimate * b})
	}
	return map[string]rule{
		"both from the old state": func(e element) float64 {
			old := e.begun()
			right(e)
			return e.theta + old
		},
		"twice the variance of the noise": func(e element) float64 {
			e.xi *= math.Sqrt2
			return right(e)
		},
		"no N in the drift":    unscaled(right),
		"no noise estimate":    vary(1, 0),
		"ten percent friction": vary(1.1, 1.1),
		"a start at rest":      resting(right),
		"the friction also slows the force": func(e element) float64 {
			e.g *= 1 - s.Friction
			return right(e)
		},
	}
}

func baoabRule(s langevin.BAOAB) rule {
	c := math.Exp(-s.Friction)
	return func(e element) float64 {
		v := e.begun() - e.h*e.n*e.g
		theta := e.theta + v/2
		v = c*v + math.Sqrt((1-c*c)*e.h*e.temperature)*e.xi
		*e.memory = v
		return theta + v/2
	}
}

func wrongBAOAB(s langevin.BAOAB) map[string]rule {
	right, c := baoabRule(s), math.Exp(-s.Friction)
	return map[string]rule{
		"twice the variance of the noise": func(e element) float64 {
			e.xi *= math.Sqrt2
			return right(e)
		},
		"the noise of a Taylor expansion": func(e element) float64 {
			e.xi *= math.Sqrt(2 * s.Friction / (1 - c*c))
			return right(e)
		},
		"the friction of a Taylor expansion": baoabRule(langevin.BAOAB{Friction: -math.Log(1 - s.Friction)}),
		"no N in the drift":                  unscaled(right),
		"a start at rest":                    resting(right),
		"OBA": func(e element) float64 {
			e.begun()
			*e.memory = c**e.memory + math.Sqrt((1-c*c)*e.h*e.temperature)*e.xi - e.h*e.n*e.g
			return e.theta + *e.memory
		},
	}
}

func obaboRule(s langevin.OBABO) rule {
	c := math.Exp(-s.Friction)
	return func(e element) float64 {
		v := e.begun() - e.h/2*e.n*e.g
		v = c*v + math.Sqrt((1-c*c)*e.h*e.temperature)*e.xi
		*e.memory = v - e.h/2*e.n*e.g
		return e.theta + *e.memory
	}
}

func wrongOBABO(s langevin.OBABO) map[string]rule {
	right, c := obaboRule(s), math.Exp(-s.Friction)
	scaled := func(inputs, noise float64) rule {
		return func(e element) float64 {
			e.g *= inputs
			e.xi *= math.Sqrt(noise)
			return right(e)
		}
	}
	return map[string]rule{
		"twice the variance of the noise":    scaled(1, 2),
		"half the variance of the noise":     scaled(1, 0.5),
		"half the force":                     scaled(0.5, 1),
		"both halves of B before O":          scaled(2*c/(1+c), 1),
		"both halves of B after O":           scaled(2/(1+c), 1),
		"the noise of a Taylor expansion":    scaled(1, 2*s.Friction/(1-c*c)),
		"the friction of a Taylor expansion": obaboRule(langevin.OBABO{Friction: -math.Log(1 - s.Friction)}),
		"no N in the drift":                  unscaled(right),
		"a start at rest":                    resting(right),
		"BAOAB":                              baoabRule(langevin.BAOAB(s)),
	}
}

// TestOBABOMoments: the closed forms of OBABO's comment, and the chain with OBABO's own order of
// parts.
func TestOBABOMoments(t *testing.T) {
	const k, temperature = 0.8, 0.7
	near := func(what string, got, want float64) {
		if !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	for _, friction := range []float64{0.05, 0.4, 3} {
		for _, h := range []float64{0.01, 0.5, 3} {
			s, c := langevin.OBABO{Friction: friction}, math.Exp(-friction)
			p := chainOf(s, curvature(k), h, temperature, 0).covariance()
			variance := temperature / k / (1 - h*k/4)
			near("the variance", p.At(0, 0), variance)
			near("the kinetic temperature", p.At(1, 1)/h, k*variance)
			half := math.Exp(-friction / 2)
			noise := (1 - half*half) * h * temperature
			ordered := still(curvature(k)).relax(half, noise).kick(1, h/2, 0, 0).drift(1).kick(1, h/2, 0, 0).relax(half, noise).covariance()
			near("the variance of O, B, A, B, O", ordered.At(0, 0), variance)
			near("the kinetic temperature after O", ordered.At(1, 1)/h, temperature)
			const gradient = 1.3
			heated := chainOf(s, curvature(k), h, temperature, gradient).covariance()
			near("the heating", heated.At(0, 0)/p.At(0, 0), 1+h*gradient*gradient/(4*temperature)*(1+c)/(1-c))
		}
	}
	for _, friction := range []float64{0, -1, math.Inf(1), math.NaN()} {
		if err := (langevin.OBABO{Friction: friction}).Validate(); err == nil {
			t.Errorf("Friction %v is accepted", friction)
		}
	}
}

// friction returns chi at the beginning of the step.
func (e element) friction(start float64) float64 {
	if e.step == 0 {
		*e.chi = start
	}
	return *e.chi
}

// adapted returns the change of chi for the velocity v.
func (e element) adapted(s langevin.SGNHT, v float64) float64 {
	if e.temperature == 0 {
		return 0
	}
	return s.Coupling * min(v*v/(e.h*e.temperature)-1, 20)
}

func eulerRule(s langevin.SGNHT) rule {
	return func(e element) float64 {
		v := (1-e.friction(s.Friction))*e.begun() - e.h*e.n*e.g + math.Sqrt(2*s.Friction*e.h*e.temperature)*e.xi
		*e.memory = v
		*e.chi += e.adapted(s, v)
		return e.theta + v
	}
}

func badodabRule(s langevin.SGNHT) rule {
	return func(e element) float64 {
		v := e.begun() - e.h*e.n*e.g
		chi := e.friction(s.Friction) + e.adapted(s, v)/2
		c, theta := math.Exp(-chi), e.theta+v/2
		v = c*v + math.Sqrt((1-c*c)*s.Friction/chi*e.h*e.temperature)*e.xi
		*e.memory = v
		*e.chi = chi + e.adapted(s, v)/2
		return theta + v/2
	}
}

func wrongSGNHT(s langevin.SGNHT, of func(langevin.SGNHT) rule) map[string]rule {
	right, other, loose, papers := of(s), s, s, s // no excess comes near 20 in ten steps: see TestSGNHTWindup
	other.Friction *= 1.1
	loose.Coupling /= 2
	return map[string]rule{
		"twice the variance of the noise": func(e element) float64 {
			e.xi *= math.Sqrt2
			return right(e)
		},
		"no N in the drift":    unscaled(right),
		"a start at rest":      resting(right),
		"ten percent friction": of(other),
		"half the coupling":    of(loose),
		"the paper's coupling, h T": func(e element) float64 {
			papers.Coupling = e.h * e.temperature
			return of(papers)(e)
		},
		"a friction that does not adapt": func(e element) float64 {
			e.friction(s.Friction)
			*e.chi = s.Friction
			return right(e)
		},
		"a friction that adapts to T": func(e element) float64 {
			theta := right(e)
			*e.chi += s.Coupling * (1/e.h - 1) * square(*e.memory) / e.temperature
			return theta
		},
	}
}

func wrongBADODAB(s langevin.SGNHT) map[string]rule {
	wrong, right := wrongSGNHT(s, badodabRule), badodabRule(s)
	wrong["no D before O"] = func(e element) float64 {
		v := e.begun() - e.h*e.n*e.g
		chi := e.friction(s.Friction) - e.adapted(s, v)/2
		*e.chi = chi
		theta := right(e)
		*e.chi += e.adapted(s, v) / 2
		return theta
	}
	wrong["the noise of a fixed friction"] = func(e element) float64 {
		v := e.begun() - e.h*e.n*e.g
		chi := e.friction(s.Friction) + e.adapted(s, v)/2
		e.xi *= math.Sqrt((1 - math.Exp(-2*s.Friction)) / (1 - math.Exp(-2*chi)) * chi / s.Friction)
		return right(e)
	}
	return wrong
}
