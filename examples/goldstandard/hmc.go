package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/comparison"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/metropolis"
)

// A trajectory of 60 leaps takes 60 epochs of one step. With the step size that burn-in finds, it
// is long enough for a weight that the data do not constrain to go through a quarter of its period.
// Chains of one run start at different values.
const (
	chains    = 2
	hmcLeaps  = 60
	hmcWarmup = 40 // draws
	hmcDraws  = 100
)

// reference is a sample of the posterior: predictions, and how sure each draw was of each test
// image's label.
type reference struct {
	mean       []float64
	confidence [][][]float64 // by image, chain and draw
	acceptance float64

	temperature *pollen.Measured // of what predictions depend on
}

// hmcEntry is the run with that seed.
func (s *study) hmcEntry(seed uint64) comparison.Entry {
	warmup, draws := s.scaled(hmcWarmup), s.scaled(hmcDraws)
	return comparison.Entry{Title: fmt.Sprintf("HMC, seed %d", seed), Spec: pollen.Spec{
		Network: model, Method: metropolis.HMC{Leaps: hmcLeaps, Jitter: 0.2}, Batch: dataSize, Epochs: hmcLeaps * (warmup + draws),
		BurnIn: new(hmcLeaps * warmup), Samples: draws, Chains: chains, Seed: seed, Prior: new(prior),
	}}
}

// hmc draws from the posterior of all the data by chains with that seed.
func (s *study) hmc(seed uint64) (*reference, error) {
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
	r := &reference{confidence: make([][][]float64, testSize), acceptance: float64(found.Acceptance), temperature: found.Predictions}
	for i := range r.confidence {
		r.confidence[i] = make([][]float64, chains)
	}
	seen := 0
	average, err := run.Predictions(s.ctx, s.data.Test, func(probabilities []float32, _ float64) error {
		chain := seen / draws // the samples come by chain, and then by step
		for i, label := range s.data.Test.Labels {
			r.confidence[i][chain] = append(r.confidence[i][chain], float64(probabilities[i*classes+int(label)]))
		}
		seen++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if seen != chains*draws {
		return nil, errors.Errorf("goldstandard: HMC left %d samples, wants %d of each of %d chains", seen, draws, chains)
	}
	r.mean = average.Probabilities
	return r, nil
}

// printConvergence reports whether all chains, of both seeds, predict alike.
func printConvergence(out io.Writer, first, second *reference) {
	var rHats []float64
	for i := range first.confidence {
		v, err := diagnostics.SplitRHat(slices.Concat(first.confidence[i], second.confidence[i]))
		if err == nil {
			rHats = append(rHats, v)
		}
	}
	fmt.Fprintf(out, "HMC: 2 seeds x %d chains x %d draws of %d leaps, acceptance %.2f\n", chains, len(first.confidence[0][0]), hmcLeaps,
		(first.acceptance+second.acceptance)/2)
	if len(rHats) > 0 {
		slices.Sort(rHats)
		fmt.Fprintf(out, "Split R-hat of the label's probability over %d test images: median %.3f, 95 %% of them below %.3f\n",
			len(rHats), rHats[len(rHats)/2], rHats[len(rHats)*95/100])
	}
}
