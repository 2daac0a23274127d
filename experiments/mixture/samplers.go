package main

import (
	"context"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// setting is a run of a sampler on minibatches.
type setting struct {
	sampler     langevin.Sampler
	coordinates coordinates
	dispersed   bool // starts at draws from the prior instead of (1, 1)
	chains      int
	batch       int // the number of points means no gradient noise
	plan        langevin.Plan
	rates       optimizers.Schedule // h
	exchange    langevin.ReplicaExchange
	cold        bool // at temperature 0, which is SGD
}

// sample runs the chains of a setting and returns their draws.
func sample(data []float64, seed uint64, s setting) (kept states, err error) {
	b := graph.New(tensor.Float32)
	_, loss := model(b, data, s.batch, s.coordinates, s.dispersed)
	sizes, err := s.rates.Rates(s.plan.Steps)
	if err != nil {
		return kept, err
	}
	temperature := 1.0
	if s.cold {
		temperature = 0
	}
	temperatures, err := s.plan.Temperatures(s.sampler, temperature)
	if err != nil {
		return kept, err
	}
	posterior := langevin.Posterior{DataSize: len(data)} // the loss includes the prior
	var replicas *langevin.Replicas
	var interventions []langevin.Hook
	if s.exchange.Every > 0 {
		replicas, err = s.exchange.Attach(b, s.sampler, posterior, loss, sizes)
		interventions = append(interventions, replicas)
	} else {
		err = langevin.Attach(b, s.sampler, posterior, loss, sizes, temperatures)
	}
	if err != nil {
		return kept, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: seed, Chains: s.chains}, func(session *graph.Session) error {
		return s.plan.Run(context.Background(), session, graph.MetricRows, func(p langevin.Window) error {
			if !p.Sample {
				return nil
			}
			kept.weights = append(kept.weights, sizes[p.To-1])
			return kept.add(session, s.coordinates, replicas)
		}, interventions...)
	})
	return kept, err
}

// add appends the current states of all chains, or of the chains at the lowest temperature.
func (s *states) add(session *graph.Session, c coordinates, replicas *langevin.Replicas) error {
	chains, err := replicas.Cold(session)
	if err != nil {
		return err
	}
	s.chains = len(chains)
	var w [2]float32
	for _, chain := range chains {
		if err := graph.Read(session, "w", chain, 0, w[:]); err != nil {
			return err
		}
		theta1, theta2 := point(c, w[:])
		s.theta1, s.theta2 = append(s.theta1, float64(theta1)), append(s.theta2, float64(theta2))
	}
	return nil
}

// hamiltonian samples with HMC, whose energies are in float64. It keeps every fourth state and
// drops the first twentieth as burn-in.
func hamiltonian(data []float64, seed uint64, c coordinates, hmc mcmc.Metropolis, chains, proposals int) (kept states, err error) {
	b := graph.New(tensor.Float64)
	w, loss := model(b, data, len(data), c, true)
	walk, err := hmc.Attach(b, mcmc.Target{
		Potential: langevin.Posterior{DataSize: len(data)}.Potential(b, loss), Temperature: 1,
		Quantities: []mcmc.Quantity{{Name: "w", Node: w}},
	})
	if err != nil {
		return kept, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: seed, Chains: chains}, func(session *graph.Session) error {
		const thinning = 4
		draws := proposals / thinning
		traces, err := walk.Sample(context.Background(), session, draws, thinning)
		if err != nil {
			return err
		}
		first, err := traces.Of("w", 0)
		if err != nil {
			return err
		}
		second, err := traces.Of("w", 1)
		kept.chains = chains
		for draw := draws / 20; draw < draws && err == nil; draw++ {
			kept.weights = append(kept.weights, 1)
			for chain := range chains {
				theta1, theta2 := point(c, []float64{first[chain][draw], second[chain][draw]})
				kept.theta1, kept.theta2 = append(kept.theta1, theta1), append(kept.theta2, theta2)
			}
		}
		return err
	})
	return kept, err
}
