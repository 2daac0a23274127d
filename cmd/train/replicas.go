package main

import (
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
)

// swapEvery is how many steps lie between two attempts to swap temperatures, and energyMinibatches over how many minibatches an energy is averaged for one.
const (
	swapEvery         = 50
	energyMinibatches = 10
)

// ladder are the temperatures of replica exchange, from that of the samples on; none without it.
func (c Config) ladder() ([]float64, error) {
	if c.Temperatures == nil {
		return nil, nil
	}
	var ladder []float64
	for _, text := range strings.Split(*c.Temperatures, ",") {
		v, err := parseFloat(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.Errorf("train: temperatures %q: %q is not a number", *c.Temperatures, text)
		}
		ladder = append(ladder, v)
	}
	return ladder, c.exchange(ladder, true).Validate()
}

// exchange swaps those temperatures. The energies of a minibatch that has all data have no error.
func (c Config) exchange(ladder []float64, minibatches bool) langevin.ReplicaExchange {
	e := langevin.ReplicaExchange{Temperatures: ladder, Every: swapEvery, Minibatches: 1}
	if minibatches {
		e.Minibatches, e.Correction = energyMinibatches, 1
	}
	return e
}

// checkLadder refuses temperatures that do not go with each other or with other options.
func (c Config) checkLadder() error {
	ladder, err := c.ladder()
	switch {
	case err != nil || len(ladder) == 0:
		return err
	case c.Temperature != nil && *c.Temperature != ladder[0]:
		return errors.Errorf("train: temperature %v with temperatures %s: the samples' is the first of these", *c.Temperature, *c.Temperatures)
	case c.Cycles != nil || c.Anchor != nil:
		return errors.Errorf("train: temperatures %s: replica exchange goes neither with cycles nor with an anchor", *c.Temperatures)
	}
	return nil
}

// replicas is how many chains of the session make one of the run: as many as there are temperatures.
func (c Config) replicas() int {
	ladder, err := c.ladder()
	if err != nil || len(ladder) == 0 {
		return 1
	}
	return len(ladder)
}

// attachReplicas adds a sampler whose chains have the temperatures of a ladder, and swap them.
func (f *fitting) attachReplicas(b *graph.Builder, sampler langevin.Sampler, posterior langevin.Posterior, loss *graph.Node) error {
	ladder, err := f.config.ladder()
	if err != nil {
		return err
	}
	exchange := f.config.exchange(ladder, f.config.Batch < f.data.Len())
	f.replicas, err = exchange.Attach(b, sampler, posterior, loss, posterior.StepSizes(f.rates))
	f.interventions = append(f.interventions, f.replicas)
	return err
}
