package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
)

func psghmcRows() []row {
	frozen := langevin.PSGHMC{Friction: 0.3, Alpha: 0.6, Lambda: 0.05, Gamma: langevin.GammaFrozen, FreezeAt: 4}
	none := langevin.PSGHMC{Friction: 0.3, Alpha: 0.6, Lambda: 0.05, Gamma: langevin.GammaNone}
	sampling := langevin.PSGHMC{Friction: 0.3, Alpha: 0.99, Lambda: 1e-3, Gamma: langevin.GammaFrozen, FreezeAt: 200}
	// u is (1 - a) sqrt(h T) times the start and sqrt(2 a h T) times the noise, and V is 0.
	still := (square(1-none.Friction)/2 + none.Friction) / none.Lambda
	return []row{
		{
			name: "PSGHMC, Gamma frozen", sampler: frozen, rule: psghmcRule(frozen), wrong: wrongPSGHMC(frozen), inertia: true, still: still,
			sampling: sampling, chain: processOf(sampling), settled: sampling.FreezeAt,
			preconditioner: func(t testing.TB, s *graph.Session, chain, n int) []float64 {
				return frozenPreconditioner(t, s, chain, n, sampling.Lambda)
			},
			expected: func(gradient float64) float64 { return 1 / (sampling.Lambda + gradient) },
		},
		{name: "PSGHMC, Gamma none", sampler: none, rule: psghmcRule(none), wrong: wrongPSGHMC(none), inertia: true, still: still},
	}
}

func psghmcRule(p langevin.PSGHMC) rule { return psghmcBy(p, 1, 1) }

// psghmcBy is the rule with other powers of sqrt G in the kick and in the drift.
func psghmcBy(p langevin.PSGHMC, inputs, move float64) rule {
	adapting := langevin.PSGLD{Alpha: p.Alpha, Lambda: p.Lambda, Gamma: p.Gamma, FreezeAt: p.FreezeAt}
	return func(e element) float64 {
		second := e
		second.memory = e.chi
		root := math.Sqrt(1 / (p.Lambda + math.Sqrt(adaptedV(adapting, second))))
		u := (1-p.Friction)*e.begun() - e.h*math.Pow(root, inputs)*e.n*e.g + math.Sqrt(2*p.Friction*e.h*e.temperature)*e.xi
		*e.memory = u
		return e.theta + math.Pow(root, move)*u
	}
}

func wrongPSGHMC(p langevin.PSGHMC) map[string]rule {
	right := psghmcRule(p)
	slow, long, loose := p, p, p
	slow.Friction *= 1.1
	long.Alpha = 0.7
	loose.Lambda *= 1.1
	wrong := map[string]rule{
		"twice the variance of the noise": func(e element) float64 {
			e.xi *= math.Sqrt2
			return right(e)
		},
		"no N in the drift":         unscaled(right),
		"a start at rest":           resting(right),
		"G before the force":        psghmcBy(p, 2, 1),
		"no G before the force":     psghmcBy(p, 0, 1),
		"theta moves by u":          psghmcBy(p, 1, 0),
		"theta moves by G u":        psghmcBy(p, 1, 2),
		"ten percent friction":      psghmcRule(slow),
		"a longer memory":           psghmcRule(long),
		"ten percent of the lambda": psghmcRule(loose),
	}
	if p.Gamma == langevin.GammaFrozen {
		never, late, early := p, p, p
		never.Gamma = langevin.GammaNone
		late.FreezeAt++
		early.FreezeAt--
		wrong["never frozen"], wrong["frozen late"], wrong["frozen early"] = psghmcRule(never), psghmcRule(late), psghmcRule(early)
	}
	return wrong
}
