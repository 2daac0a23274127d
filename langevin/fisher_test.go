package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
)

// fisherRow is the suite's row of FisherSGLD.
func fisherRow() row {
	f := langevin.FisherSGLD{Alpha: 0.6, Damping: 0.05, FreezeAt: 4}
	sampling := langevin.FisherSGLD{Alpha: 0.99, Damping: 0.05, FreezeAt: 1000}
	return row{
		name: "FisherSGLD", sampler: f, rule: fisherRule(f), still: 1 / f.Damping, wrong: wrongFisher(f),
		sampling: sampling, chain: euler, euler: true,
		settled: sampling.FreezeAt,
		preconditioner: func(t testing.TB, s *graph.Session, chain, n int) []float64 {
			g := trial.Values(t, s, trial.ParameterName+secondMoment, chain, n)
			for i, v := range g {
				g[i] = 1 / (sampling.Damping + v)
			}
			return g
		},
		expected: func(gradient float64) float64 { return 1 / (sampling.Damping + gradient*gradient) },
	}
}

func fisherRule(f langevin.FisherSGLD) rule {
	return fisherStep(f, func(v float64) float64 { return 1 / (f.Damping + v) }, func(v float64) float64 { return 1 / (f.Damping + v) })
}

// fisherStep is the rule with a preconditioner of the drift and one of the noise.
func fisherStep(f langevin.FisherSGLD, drift, noise func(v float64) float64) rule {
	adapted := langevin.PSGLD{Alpha: f.Alpha, Gamma: langevin.GammaFrozen, FreezeAt: f.FreezeAt}
	return func(e element) float64 {
		v := adaptedV(adapted, e)
		return e.theta - e.h*drift(v)*e.n*e.g + math.Sqrt(2*e.h*e.temperature*noise(v))*e.xi
	}
}

func wrongFisher(f langevin.FisherSGLD) map[string]rule {
	right := func(v float64) float64 { return 1 / (f.Damping + v) }
	one := func(float64) float64 { return 1 }
	root := func(v float64) float64 { return 1 / (f.Damping + math.Sqrt(v)) }
	late, early := f, f
	late.FreezeAt++
	early.FreezeAt--
	return map[string]rule{
		"no G in the noise": fisherStep(f, right, one),
		"G^2 in the noise":  fisherStep(f, right, func(v float64) float64 { return right(v) * right(v) }),
		"no G in the drift": fisherStep(f, one, right),
		"the root":          fisherStep(f, root, root),
		"frozen late":       fisherRule(late),
		"frozen early":      fisherRule(early),
	}
}

func TestFreezingValidates(t *testing.T) {
	nan := math.NaN()
	for _, f := range []langevin.FisherSGLD{
		{}, {Alpha: -0.1, Damping: 1, FreezeAt: 1}, {Alpha: 1, Damping: 1, FreezeAt: 1}, {Alpha: nan, Damping: 1, FreezeAt: 1},
		{Damping: 0, FreezeAt: 1}, {Damping: nan, FreezeAt: 1}, {Damping: math.Inf(1), FreezeAt: 1}, {Damping: 1}, {Damping: 1, FreezeAt: 1 << 31},
	} {
		if err := f.Validate(); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}
	for _, p := range []langevin.PSGLD{
		{Lambda: 1, Gamma: langevin.GammaHutchinson, FreezeAt: 3},
		{Lambda: 1, Gamma: langevin.GammaExact, Distance: -1},
		{Lambda: 1, Gamma: langevin.GammaHutchinson, Distance: math.Inf(1)},
		{Lambda: 1, Gamma: langevin.GammaNone, Distance: 0.1},
	} {
		if err := p.Validate(); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}
