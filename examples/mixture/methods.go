package main

import (
	"fmt"

	"github.com/pollen-ml/pollen/langevin"
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

// manyChains are samplers with many chains each, which start at draws from the prior: to these the modes are nearly alike. SGHMC's start at (1, 1), in the
// valley of one mode, and have to cross.
func manyChains(data []float64, chains int) []method {
	by := func(name string, s setting) method {
		s.chains, s.batch = chains, len(data)
		return method{name, func() (states, error) { return sample(data, s) }}
	}
	return []method{
		by("SGLD", setting{
			sampler: langevin.SGLD{}, dispersed: true,
			plan: langevin.Plan{Steps: 600, BurnIn: 300, Thinning: 50}, rates: optimizers.Cosine{First: 0.02, Last: 0.004},
		}),
		by("cyclical SGLD", setting{
			sampler: langevin.SGLD{}, dispersed: true,
			plan: langevin.Plan{Steps: 800, BurnIn: 20, Thinning: 60, Cycles: 4}, rates: optimizers.Cyclical{Initial: 0.03, Cycles: 4},
		}),
		by("SGHMC, from (1, 1)", setting{
			sampler: langevin.SGHMC{Friction: 0.1},
			plan:    langevin.Plan{Steps: 1000, BurnIn: 800, Thinning: 25}, rates: optimizers.Step{Initial: 0.02, Factor: 0.2, Every: 750},
		}),
		by(replicaExchange, setting{
			sampler: langevin.SGLD{}, dispersed: true,
			plan: langevin.Plan{Steps: 500, BurnIn: 150, Thinning: 25}, rates: optimizers.Cosine{First: 0.015, Last: 0.005},
			exchange: langevin.ReplicaExchange{Temperatures: []float64{1, 4}, Every: 5, Minibatches: 1},
		}),
		{"HMC", func() (states, error) {
			hmc := langevin.Metropolis{Proposal: langevin.HMC{Leaps: 8, Jitter: 0.2}, StepSize: 0.2}
			return hamiltonian(data, hmc, chains, 25, 20)
		}},
	}
}

// oneChain are single chains, of which there are four, with the published step sizes: epsilon = 2h from 0.01 to 0.0001, for 10 000 sweeps through the data.
func oneChain(data []float64) []method {
	var methods []method
	for _, batch := range []int{1, 10, len(data)} {
		steps := 10000 * len(data) / batch
		methods = append(methods, method{fmt.Sprintf(singleChain, batch), func() (states, error) {
			return sample(data, setting{
				sampler: langevin.SGLD{}, chains: 4, batch: batch, rates: optimizers.Polynomial{First: 0.005, Last: 0.00005, Exponent: 0.55},
				plan: langevin.Plan{Steps: steps, BurnIn: steps / 10, Thinning: steps / 1000},
			})
		}})
	}
	return methods
}

// descent is where SGD ends from (1, 1): with the learning rate 0.01 on the loss of one point, in 300 epochs.
func descent(data []float64) (theta1, theta2 float64, err error) {
	steps := 300 * len(data)
	kept, err := sample(data, setting{
		sampler: langevin.SGLD{}, cold: true, chains: 1, batch: 1, rates: optimizers.Constant{Rate: posterior(len(data)).StepSize(0.01)},
		plan: langevin.Plan{Steps: steps, Thinning: steps},
	})
	if err != nil {
		return 0, 0, err
	}
	return kept.theta1[0], kept.theta2[0], nil
}
