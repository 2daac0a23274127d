package main

import (
	"context"
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// setting is a sampler's run on a potential in the plane.
type setting struct {
	potential func(b *graph.Builder, theta *graph.Node) *graph.Node
	sampler   langevin.Sampler
	chains    int
	plan      langevin.Plan
	rates     optimizers.Schedule // h
	exchange  langevin.ReplicaExchange
	dispersed float64 // initial coordinates are uniform between minus and plus this
}

// states are the draws of all chains: one draw of every chain, then the next. With replica exchange
// these are the chains at the lowest temperature.
type states struct {
	chains int
	x, y   []float64
}

func (s setting) start(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
	random.Uniforms(values, 0, random.Address{Seed: 1, Chain: chain})
	for i := range values {
		values[i] = s.dispersed * (2*values[i] - 1)
	}
}

// sample runs the chains and returns their draws.
func (s setting) sample() (kept states, err error) {
	b := graph.New(tensor.Float32)
	loss := s.potential(b, b.Parameter("theta", s.start, 2))
	sizes, err := s.rates.Rates(s.plan.Steps)
	if err != nil {
		return kept, err
	}
	posterior := langevin.Posterior{DataSize: 1}
	var replicas *langevin.Replicas
	var interventions []langevin.Hook
	if s.exchange.Every > 0 {
		replicas, err = s.exchange.Attach(b, s.sampler, posterior, loss, sizes)
		interventions = append(interventions, replicas)
	} else {
		var temperatures []float64
		if temperatures, err = s.plan.Temperatures(s.sampler, 1); err != nil {
			return kept, err
		}
		err = langevin.Attach(b, s.sampler, posterior, loss, sizes, temperatures)
	}
	if err != nil {
		return kept, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: s.chains}, func(session *graph.Session) error {
		return s.plan.Run(context.Background(), session, graph.MetricRows, func(p langevin.Window) error {
			if !p.Sample {
				return nil
			}
			return kept.add(session, replicas)
		}, interventions...)
	})
	return kept, err
}

// add appends the current states of all chains, or of the chains at the lowest temperature.
func (s *states) add(session *graph.Session, replicas *langevin.Replicas) error {
	chains, err := replicas.Cold(session)
	if err != nil {
		return err
	}
	s.chains = len(chains)
	for _, chain := range chains {
		var theta [2]float32
		if err := graph.Read(session, "theta", chain, 0, theta[:]); err != nil {
			return err
		}
		s.x, s.y = append(s.x, float64(theta[0])), append(s.y, float64(theta[1]))
	}
	return nil
}

// last returns the last n states.
func (s states) last(n int) (x, y []float64) {
	from := max(0, len(s.x)-n)
	return slices.Clone(s.x[from:]), slices.Clone(s.y[from:])
}
