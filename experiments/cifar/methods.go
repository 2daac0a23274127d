package main

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// Settings of Izmailov et al. 2021, from the README.md of their programs (google-research/bnn_hmc),
// which ran SGD for 500 epochs and samplers for 10 000. Their step sizes are on the sum of the
// losses: a rate here is theirs times the number of images, 40 960. Their cycles have 50 epochs and
// one sample each. The ensemble has no momentum, so its rate is ten times SGD's.
const (
	batch       = 80
	variance    = 0.2 // of the prior
	weightDecay = 10. // of SGD, on the sum of the losses
	rate        = 3e-7 * 40960
	rateOfSGLD  = 1e-6 * 40960
	members     = 5
	cycle       = 50 // epochs
	thinning    = 2  // epochs from one sample to the next
	shortest    = 4  // minimum epochs of a run
	friction    = 0.1

	rateOfPreconditioned = 3e-5 // the preconditioner divides by gradients of the sum, so the number of images cancels
)

// method is a row of the table: how to train, and what was published for it.
type method struct {
	name, title string
	published   string // agreement and total variation
	spec        func(s *study) bayes.Spec
}

var methods = []method{
	{"sgd", "SGD", "0.855 0.190", func(s *study) bayes.Spec {
		spec := s.specification(optimizers.Momentum{Decay: 0.9, WeightDecay: weightDecay / float64(s.images)}, optimizers.Cosine{First: rate})
		spec.Prior = nil // the weight decay is the prior
		return spec
	}},
	{"ensemble", "ensemble of 5", "0.915 0.115", func(s *study) bayes.Spec {
		spec := s.specification(bayes.Ensemble{}, optimizers.Cosine{First: 10 * rate})
		spec.Chains = members
		return spec
	}},
	{"sgld", "SGLD", "0.915 0.110", sampled(langevin.SGLD{}, rateOfSGLD)},
	{"sghmc", "SGHMC", "0.920 0.109", sampled(langevin.SGHMC{Friction: friction}, rate)},
	{"csghmc", "cyclical SGHMC", "0.927 0.099", cyclical(langevin.SGHMC{Friction: friction / 2}, rate)},
	{"cpsghmc", "preconditioned", "0.910 0.111", cyclical(langevin.PSGHMC{
		Friction: friction / 2, Alpha: 0.99, Lambda: 1e-7 / 40960, Gamma: langevin.GammaNone,
	}, rateOfPreconditioned)},
	{"baoab", "BAOAB", "", sampled(langevin.BAOAB{Friction: friction}, rate)},
	{"sgnht", "SGNHT", "", sampled(langevin.SGNHT{Friction: friction, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3}, rate)},
}

// specification returns the settings that all methods share.
func (s *study) specification(m bayes.Method, schedule optimizers.Schedule) bayes.Spec {
	return bayes.Spec{
		Network: s.network, Method: m, Schedule: schedule, Batch: batch, Epochs: s.epochs, Seed: 1,
		Prior: new(langevin.Gaussian(math.Sqrt(variance))),
	}
}

// sampled samples the posterior at a constant rate, in the second half of a run.
func sampled(m bayes.Method, rate float64) func(s *study) bayes.Spec {
	return func(s *study) bayes.Spec {
		spec := s.specification(m, optimizers.Constant{Rate: rate})
		spec.BurnIn, spec.Samples = new(s.epochs/2), max(1, s.epochs/2/thinning)
		return spec
	}
}

// cyclical samples in the last fifth of each cycle.
func cyclical(m bayes.Method, rate float64) func(s *study) bayes.Spec {
	return func(s *study) bayes.Spec {
		cycles := max(1, s.epochs/cycle)
		spec := s.specification(m, optimizers.Cyclical{Initial: rate, Cycles: cycles})
		spec.Cycles, spec.Samples = cycles, max(cycles, s.epochs/5/thinning)
		return spec
	}
}

func methodNames() (names []string) {
	for _, m := range methods {
		names = append(names, m.name)
	}
	return names
}

func methodOf(name string) (method, error) {
	for _, m := range methods {
		if m.name == name {
			return m, nil
		}
	}
	return method{}, errors.Errorf("cifar: no method %q; there are %v", name, methodNames())
}
