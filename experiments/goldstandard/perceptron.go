package main

import (
	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// perceptron has 20 and 20 hidden units, on 160 digits. A trajectory of 60 leapfrog steps takes 60
// epochs of one step. With the step size that burn-in finds, it covers a quarter of the period of a
// weight that only the prior constrains.
var perceptron = posterior{
	examples: 160, batch: 32, network: "mlp-20-20", prior: langevin.Gaussian(priorStd),
	hmc: trajectories{leaps: 60, warmup: 40, draws: 100}, methods: perceptronMethods,
}

const priorStd = 0.2

const (
	epochs       = 4000 // of 5 steps
	descent      = 1000 // epochs of methods that begin with an optimizer
	chainsOfEach = 4    // of each sampler
	perChain     = 100  // samples of each chain
	cycles       = 4
	members      = 10
	passes       = 50 // passes of dropout, and draws from the Gaussians of SWAG, Laplace and Bayes by Backprop
)

var perceptronMethods = []method{
	{"SGD", solution},
	{"deep ensemble", func(s *study) bayes.Spec {
		spec := s.descending(bayes.Ensemble{})
		spec.Chains = members
		return spec
	}},
	{"MC dropout", func(s *study) bayes.Spec { return s.drawing(s.descending(bayes.Dropout{Rate: 0.2})) }},
	{"SWAG", func(s *study) bayes.Spec {
		spec := s.drawing(s.descending(bayes.SWAG{Rank: 20}))
		spec.Schedule, spec.BurnIn = optimizers.Constant{Rate: 0.05}, new(spec.Epochs/2)
		return spec
	}},
	{"Laplace, last layer", func(s *study) bayes.Spec { return s.drawing(s.descending(bayes.LaplaceApproximation{})) }},
	{"Bayes by Backprop", func(s *study) bayes.Spec {
		return s.drawing(s.specification(bayes.BayesByBackprop{InitialStd: 0.05}, optimizers.Cosine{First: 0.003}, epochs))
	}},
	{"SGLD", sampled(langevin.SGLD{}, optimizers.Constant{Rate: 0.005}, 0)},
	{"pSGLD, Gamma none", sampled(preconditioned(langevin.GammaNone), optimizers.Constant{Rate: 1e-4}, 0)},
	{"pSGLD, Gamma by Hutchinson", sampled(preconditioned(langevin.GammaHutchinson), optimizers.Constant{Rate: 1e-4}, 0)},
	{"pSGLD, G frozen", sampled(preconditioned(langevin.GammaFrozen), optimizers.Constant{Rate: 1e-4}, 0)},
	{"SGHMC", sampled(langevin.SGHMC{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"cyclical SGHMC", sampled(langevin.SGHMC{Friction: 0.1}, optimizers.Cyclical{Initial: 2e-3, Cycles: cycles}, cycles)},
	{"preconditioned SGHMC", sampled(langevin.PSGHMC{Friction: 0.1, Alpha: 0.99, Lambda: 1e-2, Gamma: langevin.GammaFrozen}, optimizers.Constant{Rate: 2e-5}, 0)},
	{"BAOAB", sampled(langevin.BAOAB{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"SGNHT", sampled(langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"CCAdL", sampled(langevin.CCAdL{Friction: 0.1, Alpha: 0.999, Coupling: 1e-3}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"SMILE", sampled(langevin.SMILE{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"UBU, symmetric minibatches", func(s *study) bayes.Spec {
		spec := sampled(langevin.UBU{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)(s)
		spec.Symmetric = true
		return spec
	}},
	{"MCLMC, all data", func(s *study) bayes.Spec {
		spec := sampled(mcmc.MCLMC{Friction: 0.01, EnergyVariance: 2e-5}, nil, 0)(s)
		spec.Batch, spec.Weights = s.examples, "" // a constant step size has no weights
		return spec
	}},
}

func preconditioned(gamma langevin.Gamma) langevin.Sampler {
	return langevin.PSGLD{Alpha: 0.99, Lambda: 1e-2, Gamma: gamma}
}

// sampled returns the settings of a sampler at temperature 1. The first quarter of a run, or of
// each cycle, is burn-in.
func sampled(sampler bayes.Method, schedule optimizers.Schedule, cycles int) func(s *study) bayes.Spec {
	return func(s *study) bayes.Spec {
		spec := s.specification(sampler, schedule, epochs)
		spec.Chains, spec.Cycles = chainsOfEach, cycles
		spec.BurnIn, spec.Samples = new(spec.Epochs/4/max(1, cycles)), max(2*cycles, s.scaled(perChain))
		spec.Weights = bayes.StepSize // also with cycles, whose first samples have large steps
		return spec
	}
}

// descending returns the settings of methods that begin with an optimizer, with an annealed rate.
func (s *study) descending(m bayes.Method) bayes.Spec {
	return s.specification(m, optimizers.Cosine{First: 0.05}, descent)
}

// solution returns the settings of SGD, with the prior as weight decay.
func solution(s *study) bayes.Spec {
	spec := s.descending(optimizers.SGD{WeightDecay: 1 / (float64(s.examples) * priorStd * priorStd)})
	spec.Prior = nil
	return spec
}

// drawing sets the number of draws of methods that draw at the end of a run.
func (s *study) drawing(spec bayes.Spec) bayes.Spec {
	spec.Samples = s.scaled(passes)
	return spec
}
