package main

import (
	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/comparison"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/metropolis"
	"github.com/pollen-ml/pollen/optimizers"
)

const (
	batch        = 32
	epochs       = 4000 // of 5 steps
	descent      = 1000 // epochs of the approximations that begin with a descent
	chainsOfEach = 4    // of each sampler
	perChain     = 100  // samples of each of these
	cycles       = 4
	members      = 10
	passes       = 50 // of dropout, and draws from SWAG and Bayes by Backprop
)

// method is a way to approximate the posterior's predictions.
type method struct {
	name string
	spec func(s *study) pollen.Spec
}

var methods = []method{
	{"SGD", solution},
	{"deep ensemble", func(s *study) pollen.Spec {
		spec := s.descending(pollen.Ensemble{})
		spec.Chains = members
		return spec
	}},
	{"MC dropout", func(s *study) pollen.Spec { return s.drawing(s.descending(pollen.Dropout{Rate: 0.2})) }},
	{"SWAG", func(s *study) pollen.Spec {
		spec := s.drawing(s.descending(pollen.SWAG{Rank: 20}))
		spec.Schedule, spec.BurnIn = optimizers.Constant{Rate: 0.05}, new(spec.Epochs/2)
		return spec
	}},
	{"Bayes by Backprop", func(s *study) pollen.Spec {
		return s.drawing(s.specification(pollen.BayesByBackprop{InitialDeviation: 0.05}, optimizers.Cosine{First: 0.003}, epochs))
	}},
	{"SGLD", sampled(langevin.SGLD{}, optimizers.Constant{Rate: 0.005}, 0)},
	{"pSGLD, Gamma none", sampled(preconditioned(langevin.GammaNone), optimizers.Constant{Rate: 1e-4}, 0)},
	{"pSGLD, Gamma by Hutchinson", sampled(preconditioned(langevin.GammaHutchinson), optimizers.Constant{Rate: 1e-4}, 0)},
	{"pSGLD, G frozen", sampled(preconditioned(langevin.GammaFrozen), optimizers.Constant{Rate: 1e-4}, 0)},
	{"SGHMC", sampled(langevin.SGHMC{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"cyclical SGHMC", sampled(langevin.SGHMC{Friction: 0.1}, optimizers.Cyclical{Initial: 2e-3, Cycles: cycles}, cycles)},
	{"BAOAB", sampled(langevin.BAOAB{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"SGNHT", sampled(langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"CCAdL", sampled(langevin.CCAdL{Friction: 0.1, Alpha: 0.999, Coupling: 1e-3}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"SMILE", sampled(langevin.SMILE{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"UBU, symmetric minibatches", func(s *study) pollen.Spec {
		spec := sampled(langevin.UBU{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)(s)
		spec.Symmetric = true
		return spec
	}},
	{"MCLMC, all data", func(s *study) pollen.Spec {
		spec := sampled(metropolis.MCLMC{Friction: 0.01, EnergyVariance: 2e-5}, nil, 0)(s)
		spec.Batch, spec.Weights = dataSize, "" // a rate that does not change has no weights
		return spec
	}},
}

func preconditioned(gamma langevin.Gamma) langevin.Sampler {
	return langevin.PSGLD{Alpha: 0.99, Lambda: 1e-2, Gamma: gamma}
}

// specification is what all methods share. Rates are on the mean loss.
func (s *study) specification(m pollen.Method, schedule optimizers.Schedule, epochs int) pollen.Spec {
	return pollen.Spec{
		Network: model, Method: m, Schedule: schedule, Batch: batch, Epochs: max(shortest, s.scaled(epochs)), Seed: 1, Prior: new(prior),
	}
}

// shortest is the length of a run in epochs that gives each cycle a burn-in, and SWAG its states.
const shortest = 16

// sampled averages over chains at temperature 1 after the first quarter of them, or of each cycle.
func sampled(sampler pollen.Method, schedule optimizers.Schedule, cycles int) func(s *study) pollen.Spec {
	return func(s *study) pollen.Spec {
		spec := s.specification(sampler, schedule, epochs)
		spec.Chains, spec.Cycles = chainsOfEach, cycles
		spec.BurnIn, spec.Samples = new(spec.Epochs/4/max(1, cycles)), max(2*cycles, s.scaled(perChain))
		spec.Weights = pollen.StepSize // also of cycles, which sample from their large steps on
		return spec
	}
}

// descending goes down to a maximum of the posterior: weight decay is the prior.
func (s *study) descending(m pollen.Method) pollen.Spec {
	return s.specification(m, optimizers.Cosine{First: 0.05}, descent)
}

// solution is where SGD ends, with the prior as weight decay.
func solution(s *study) pollen.Spec {
	spec := s.descending(optimizers.SGD{WeightDecay: 1 / (dataSize * priorDeviation * priorDeviation)})
	spec.Prior = nil
	return spec
}

// drawing draws at the end of a run from what it found.
func (s *study) drawing(spec pollen.Spec) pollen.Spec {
	spec.Samples = s.scaled(passes)
	return spec
}

// run makes the run of an entry, or goes on with it.
func (s *study) run(e comparison.Entry) (*pollen.Run, error) {
	return s.runs.Fit(s.ctx, e, &s.data, pollen.WithDevice(s.device))
}

// predict averages the probabilities of a method's samples for the test images, each with its
// weight. Of samplers there is the temperature of what predictions depend on, else "-".
func (s *study) predict(m method) (mean []float64, temperature string, err error) {
	run, err := s.run(comparison.Entry{Title: m.name, Spec: m.spec(s)})
	if err != nil {
		return nil, "", err
	}
	found, err := run.Diagnostics()
	if err != nil {
		return nil, "", err
	}
	average, err := run.Predictions(s.ctx, s.data.Test, nil)
	if err != nil {
		return nil, "", err
	}
	return average.Probabilities, text(found.Predictions), nil
}
