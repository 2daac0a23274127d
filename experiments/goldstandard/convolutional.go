package main

import (
	_ "embed"
	"path/filepath"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

//go:embed convolutional.json
var convolutionalReference []byte

// convolutional is lenet-small on 1000 digits. Its prior has weights of the size that layers.He
// starts with. Under the default prior N(0, 0.1) chains take several times as long to mix, because
// it hardly constrains a layer of few inputs.
var convolutional = posterior{
	examples: 1000, batch: 100, network: "lenet-small", prior: langevin.FanIn(2), warm: true,
	hmc: trajectories{leaps: 60, warmup: 40, draws: 300}, methods: convolutionalMethods,
	stored: convolutionalReference,
}

// Samplers of the convolutional network start at the ensemble's networks. All see the same number
// of images; a row takes some ten minutes on two cores.
const (
	longEpochs  = 9600
	longBurnIn  = 500 // epochs
	longChains  = 2
	longSamples = 100 // per chain
	longMembers = 4   // of the ensemble
)

var ensemble = method{"deep ensemble", func(s *study) bayes.Spec {
	return bayes.Spec{Network: s.network, Method: bayes.Ensemble{}, Epochs: s.scaled(100), Chains: longMembers, Seed: 1, Prior: new(s.prior)}
}}

var convolutionalMethods = []method{
	ensemble,
	{"auto, all data", func(s *study) bayes.Spec {
		spec := onward(bayes.Auto{}, nil, 0)(s)
		spec.Batch, spec.Weights = 0, ""
		return spec
	}},
	{"BAOAB", onward(langevin.BAOAB{Friction: 0.03}, optimizers.Constant{Rate: 3e-3}, 0)},
	{"cyclical SGHMC", onward(langevin.SGHMC{Friction: 0.03}, optimizers.Cyclical{Initial: 6e-3, Cycles: cycles}, cycles)},
}

// ensembleDir returns the directory of the ensemble's run.
func (s *study) ensembleDir() string {
	return filepath.Join(s.dir, comparison.Entry{Title: ensemble.name}.Dir())
}

// onward returns the settings of a sampler that starts where the ensemble ended.
func onward(m bayes.Method, schedule optimizers.Schedule, cycles int) func(s *study) bayes.Spec {
	return func(s *study) bayes.Spec {
		spec := s.specification(m, schedule, longEpochs)
		spec.Chains, spec.Cycles, spec.Start = longChains, cycles, s.ensembleDir()
		spec.BurnIn, spec.Samples = new(s.scaled(longBurnIn)/max(1, cycles)), max(2*cycles, s.scaled(longSamples))
		spec.Weights = bayes.StepSize
		return spec
	}
}
