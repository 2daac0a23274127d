package main

import (
	_ "embed"
	"path/filepath"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

//go:embed convolutional.json
var convolutionalReference []byte

// Weights of the size that layers.He starts with: under N(0, 0.1), the default, chains take several
// times as long to mix, as a layer of few inputs is hardly bound.
var convolutional = posterior{
	examples: 1000, batch: 100, network: "lenet-small", prior: langevin.FanIn(2), warm: true,
	hmc: trajectories{leaps: 60, warmup: 40, draws: 300}, methods: convolutionalMethods,
	stored: convolutionalReference,
}

// Samplers of the convolutional network begin at the ensemble's networks, and see as many images
// each, so that a row takes some ten minutes of two cores.
const (
	longEpochs  = 9600
	longBurnIn  = 500 // epochs
	longChains  = 2
	longSamples = 100 // of each chain
	longMembers = 4   // of the ensemble
)

var ensemble = method{"deep ensemble", func(s *study) pollen.Spec {
	return pollen.Spec{Network: s.network, Method: pollen.Ensemble{}, Epochs: s.scaled(100), Chains: longMembers, Seed: 1, Prior: new(s.prior)}
}}

var convolutionalMethods = []method{
	ensemble,
	{"auto, all data", func(s *study) pollen.Spec {
		spec := onward(pollen.Auto{}, nil, 0)(s)
		spec.Batch, spec.Weights = 0, ""
		return spec
	}},
	{"BAOAB", onward(langevin.BAOAB{Friction: 0.03}, optimizers.Constant{Rate: 3e-3}, 0)},
	{"cyclical SGHMC", onward(langevin.SGHMC{Friction: 0.03}, optimizers.Cyclical{Initial: 6e-3, Cycles: cycles}, cycles)},
}

// ensembleDir is where the run of the ensemble is.
func (s *study) ensembleDir() string {
	return filepath.Join(s.dir, comparison.Entry{Title: ensemble.name}.Dir())
}

// onward samples from where the ensemble ended.
func onward(m pollen.Method, schedule optimizers.Schedule, cycles int) func(s *study) pollen.Spec {
	return func(s *study) pollen.Spec {
		spec := s.specification(m, schedule, longEpochs)
		spec.Chains, spec.Cycles, spec.Start = longChains, cycles, s.ensembleDir()
		spec.BurnIn, spec.Samples = new(s.scaled(longBurnIn)/max(1, cycles)), max(2*cycles, s.scaled(longSamples))
		spec.Weights = pollen.StepSize
		return spec
	}
}
