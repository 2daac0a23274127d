package main

import (
	"fmt"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// method is a row of the table.
type method struct {
	name string
	draw func() (states, error)
}

const (
	replicaExchange = "replica exchange"
	singleChain     = "one chain, batch %d"
)

// manyChains returns samplers with many chains each. Chains start at draws from the prior, except
// SGHMC's, which all start at (1, 1), in the valley of one mode. Their lengths are chosen for
// standard errors of E[theta2] of 0.007 to 0.011 with 4096 chains; each chain has then crossed many
// times. Except for HMC, the step size adds a bias: for SGLD's step size of 0.1 it is -0.005,
// computed on a grid from its stationary distribution.
func manyChains(data []float64, seed uint64, chains int) []method {
	centred := coordinates{Centred: true}
	by := func(name string, s setting) method {
		s.coordinates, s.chains, s.batch = centred, chains, len(data)
		return method{name, func() (states, error) { return sample(data, seed, s) }}
	}
	return []method{
		by("SGLD", setting{
			sampler: langevin.SGLD{}, dispersed: true,
			plan: langevin.Plan{Steps: 1300, BurnIn: 100, Thinning: 50}, rates: optimizers.Constant{Rate: 0.1},
		}),
		by("cyclical SGLD", setting{
			sampler: langevin.SGLD{}, dispersed: true,
			plan: langevin.Plan{Steps: 1800, BurnIn: 20, Thinning: 40, Cycles: 4}, rates: optimizers.Cyclical{Initial: 0.1, Cycles: 4},
		}),
		by("SGHMC, from (1, 1)", setting{
			sampler: langevin.SGHMC{Friction: 0.4},
			plan:    langevin.Plan{Steps: 1150, BurnIn: 300, Thinning: 50}, rates: optimizers.Constant{Rate: 0.1},
		}),
		by(replicaExchange, setting{
			sampler: langevin.SGLD{}, dispersed: true,
			plan: langevin.Plan{Steps: 900, BurnIn: 100, Thinning: 50}, rates: optimizers.Constant{Rate: 0.05},
			exchange: langevin.ReplicaExchange{Temperatures: []float64{1, 3}, Every: 20, Minibatches: 1},
		}),
		{"HMC", func() (states, error) {
			hmc := mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 3, Jitter: 0.2}, StepSize: 0.45}
			return hamiltonian(data, seed, centred, hmc, chains, 240)
		}},
	}
}

// oneChain returns single chains, four of each for a standard error, with the published step sizes:
// epsilon = 2h from 0.01 to 0.0001, for 10 000 sweeps through the data.
func oneChain(data []float64, seed uint64) []method {
	var methods []method
	for _, batch := range []int{1, minPoints, len(data)} {
		steps := 10000 * len(data) / batch
		methods = append(methods, method{fmt.Sprintf(singleChain, batch), func() (states, error) {
			return sample(data, seed, setting{
				sampler: langevin.SGLD{}, chains: 4, batch: batch, rates: optimizers.Polynomial{First: 0.005, Last: 0.00005, Exponent: 0.55},
				plan: langevin.Plan{Steps: steps, BurnIn: steps / 10, Thinning: steps / 1000},
			})
		}})
	}
	return methods
}

// descent returns where SGD ends from (1, 1) after 300 epochs with the learning rate 0.01 on the
// loss of one point.
func descent(data []float64) (theta1, theta2 float64, err error) {
	steps := 300 * len(data)
	kept, err := sample(data, 1, setting{
		sampler: langevin.SGLD{}, cold: true, chains: 1, batch: 1, rates: optimizers.Constant{Rate: 0.01 / float64(len(data))},
		plan: langevin.Plan{Steps: steps, Thinning: steps},
	})
	if err != nil {
		return 0, 0, err
	}
	return kept.theta1[0], kept.theta2[0], nil
}
