package main

import (
	"context"
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// setting says how chains of a sampler on minibatches run.
type setting struct {
	sampler   langevin.Sampler
	chains    int
	batch     int // as many points as there are: no noise of minibatches
	plan      langevin.Plan
	rates     optimizers.Schedule // h
	exchange  langevin.ReplicaExchange
	cold      bool // at temperature 0: the optimizer
	dispersed bool // starts at draws from the prior instead of (1, 1)
}

// states are those of chains, one draw after the other. With replica exchange, a chain is a ladder's coldest.
type states struct {
	chains         int
	theta1, theta2 []float64
	weights        []float64 // of draws, in averages
}

// last is the last draw of every chain.
func (s states) last() (theta1, theta2 []float64) {
	from := len(s.theta1) - s.chains
	return s.theta1[from:], s.theta2[from:]
}

// chain is one chain of them.
func (s states) chain(number int) states {
	one := states{chains: 1, weights: s.weights}
	for i := number; i < len(s.theta1); i += s.chains {
		one.theta1, one.theta2 = append(one.theta1, s.theta1[i]), append(one.theta2, s.theta2[i])
	}
	return one
}

// crossed is the share of chains that were seen in either mode.
func (s states) crossed() float64 {
	both := 0
	for chain := range s.chains {
		least, most := math.Inf(1), math.Inf(-1)
		for i := chain; i < len(s.theta2); i += s.chains {
			least, most = min(least, s.theta2[i]), max(most, s.theta2[i])
		}
		if least < -1 && most > 1 {
			both++
		}
	}
	return float64(both) / float64(s.chains)
}

// typicalError is the root of the mean over chains of the squared error of one chain's average of theta2.
func (s states) typicalError(truth float64) float64 {
	squares := 0.0
	for chain := range s.chains {
		mean, total := 0.0, 0.0
		for draw, weight := range s.weights {
			mean += weight * s.theta2[draw*s.chains+chain]
			total += weight
		}
		squares += (mean/total - truth) * (mean/total - truth)
	}
	return math.Sqrt(squares / float64(s.chains))
}

// sample runs chains on minibatches.
func sample(data []float64, s setting) (kept states, err error) {
	b := graph.New(tensor.Float32)
	_, _, loss := model(b, data, s.batch, s.dispersed)
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
	var replicas *langevin.Replicas
	var interventions []langevin.Intervention
	if s.exchange.Every > 0 {
		replicas, err = s.exchange.Attach(b, s.sampler, posterior(len(data)), loss, sizes)
		interventions = append(interventions, replicas)
	} else {
		err = langevin.Attach(b, s.sampler, posterior(len(data)), loss, sizes, temperatures)
	}
	if err != nil {
		return kept, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: s.chains}, func(session *graph.Session) error {
		return s.plan.Run(context.Background(), session, graph.MetricRows, func(p langevin.Progress) error {
			if !p.Sample {
				return nil
			}
			kept.weights = append(kept.weights, sizes[p.To-1])
			return kept.add(session, replicas)
		}, interventions...)
	})
	return kept, err
}

// add keeps the present states of all chains, or of the coldest.
func (s *states) add(session *graph.Session, replicas *langevin.Replicas) error {
	chains, err := replicas.Cold(session)
	if err != nil {
		return err
	}
	s.chains = len(chains)
	for _, chain := range chains {
		var theta1, theta2 [1]float32
		if err := graph.Read(session, "theta1", chain, 0, theta1[:]); err != nil {
			return err
		}
		if err := graph.Read(session, "theta2", chain, 0, theta2[:]); err != nil {
			return err
		}
		s.theta1, s.theta2 = append(s.theta1, float64(theta1[0])), append(s.theta2, float64(theta2[0]))
	}
	return nil
}

// hamiltonian draws by HMC, whose energies are in float64.
func hamiltonian(data []float64, hmc langevin.Metropolis, chains, burnIn, draws int) (kept states, err error) {
	b := graph.New(tensor.Float64)
	theta1, theta2, loss := model(b, data, len(data), true)
	walk, err := hmc.Attach(b, langevin.Target{
		Potential: posterior(len(data)).Potential(b, loss), Temperature: 1,
		Quantities: []langevin.Quantity{{Name: "theta1", Node: theta1}, {Name: "theta2", Node: theta2}},
	})
	if err != nil {
		return kept, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(session *graph.Session) error {
		traces, err := walk.Draw(context.Background(), session, burnIn+draws, 1)
		if err != nil {
			return err
		}
		first, err := traces.Of("theta1", 0)
		if err != nil {
			return err
		}
		second, err := traces.Of("theta2", 0)
		kept.chains = chains
		for draw := burnIn; draw < burnIn+draws && err == nil; draw++ {
			kept.weights = append(kept.weights, 1)
			for chain := range chains {
				kept.theta1, kept.theta2 = append(kept.theta1, first[chain][draw]), append(kept.theta2, second[chain][draw])
			}
		}
		return err
	})
	return kept, err
}
