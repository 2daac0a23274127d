package main

import (
	"fmt"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/mcmc"
)

// HMC runs with two seeds, each with chains from different initial values.
const (
	seeds  = 2
	chains = 2
)

// drawn is the result of a run of HMC, with each draw's probability of each test image's label.
type drawn struct {
	half
	confidence [][][]float64 // by image, chain and draw
}

// hmcEntry returns the run of HMC with a seed. If chains start at an ensemble's networks, each
// seed's chains start at different networks.
func (s *study) hmcEntry(seed int) comparison.Entry {
	t := s.posterior.hmc
	warmup, draws := s.scaled(t.warmup), s.scaled(t.draws)
	e := comparison.Entry{Title: fmt.Sprintf("HMC, seed %d", seed), Spec: bayes.Spec{
		Network: s.posterior.network, Method: mcmc.HMC{LeapfrogSteps: t.leaps, Jitter: 0.2}, Batch: s.posterior.examples,
		Epochs: t.leaps * (warmup + draws), BurnIn: new(t.leaps * warmup), Samples: draws, Chains: chains, Seed: uint64(seed),
		Prior: new(s.posterior.prior),
	}}
	if s.posterior.warm {
		e.Spec.Start, e.Spec.FirstChain = s.ensembleDir(), chains*(seed-1)
	}
	return e
}

// hmc samples the posterior of all data with the chains of a seed.
func (s *study) hmc(seed int) (*drawn, error) {
	entry := s.hmcEntry(seed)
	draws := entry.Spec.Samples
	run, err := s.run(entry)
	if err != nil {
		return nil, err
	}
	found, err := run.Diagnostics()
	if err != nil {
		return nil, err
	}
	d := &drawn{half: half{Acceptance: float64(found.Acceptance), Temperature: found.Predictions}}
	d.confidence = make([][][]float64, s.data.Test.Len())
	for i := range d.confidence {
		d.confidence[i] = make([][]float64, chains)
	}
	seen := 0
	average, err := run.Predictions(s.ctx, s.data.Test, func(probabilities []float32, _ float64) error {
		chain := seen / draws // samples are ordered by chain, then by step
		for i, label := range s.data.Test.Labels {
			d.confidence[i][chain] = append(d.confidence[i][chain], float64(probabilities[i*classes+int(label)]))
		}
		seen++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if seen != chains*draws {
		return nil, errors.Errorf("goldstandard: HMC must leave %d samples of each of %d chains, got %d in all", draws, chains, seen)
	}
	d.Mean = average.Probabilities
	return d, nil
}

// splitRHats returns split R-hat of the label's probability over all chains, for each test image
// where it varies.
func splitRHats(runs []*drawn) (rHats []float64) {
	for i := range runs[0].confidence {
		var all [][]float64
		for _, run := range runs {
			all = append(all, run.confidence[i]...)
		}
		if v, err := diagnostics.SplitRHat(all); err == nil && !math.IsNaN(v) {
			rHats = append(rHats, v)
		}
	}
	return rHats
}
