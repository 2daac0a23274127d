package main

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/metropolis"
	"github.com/pollen-ml/pollen/tensor"
)

// The samplers with a Metropolis test.
const (
	walkName        = "random-walk"
	malaName        = "mala"
	hamiltonianName = "hmc"
)

// mostExact is the size of a data set above which those are refused: each of their steps evaluates all data, in float64.
const mostExact = 10000

// firstExactRate is where their step size, which adapts during burn-in, begins, as a learning rate on the mean loss.
const firstExactRate = 0.01

// isExact tells whether a Metropolis test makes the sampler's distribution the posterior itself.
func (c Config) isExact() bool {
	switch c.samplerName() {
	case walkName, malaName, hamiltonianName:
		return true
	}
	return false
}

// checkExact refuses data that such a sampler cannot have, and minibatches, of which its test knows nothing.
func (c Config) checkExact(name string, dataSize int) error {
	switch {
	case !c.isExact():
		return nil
	case dataSize > mostExact:
		return usage("train: %s evaluates all data at each step, and the %d examples of %s are too many: wants --subset of at most %d",
			c.samplerName(), dataSize, name, mostExact)
	case c.Batch != dataSize:
		return usage("train: %s evaluates all data at each step: wants --batch %d, which are all examples of %s, got %d", c.samplerName(), dataSize, name, c.Batch)
	}
	return nil
}

// metropolis is the sampler whose step size adapts for that many steps of burn-in.
func (c Config) metropolis(burnIn, dataSize int) (metropolis.Metropolis, error) {
	v, err := c.attributes()
	if err != nil {
		return metropolis.Metropolis{}, err
	}
	h := firstExactRate / float64(dataSize)
	leaps := 1
	m := metropolis.Metropolis{Proposal: metropolis.MALA{}, StepSize: h, Warmup: burnIn}
	switch c.samplerName() {
	case walkName:
		m.Proposal = metropolis.RandomWalk{}
	case hamiltonianName:
		if v[0] != math.Trunc(v[0]) || math.Abs(v[0]) > math.MaxInt32 {
			return m, errors.Errorf("train: hmc: LEAPS is %v, wants an integer", v[0])
		}
		leaps = int(v[0])
		m = metropolis.Metropolis{
			Proposal: metropolis.HMC{Leaps: leaps, Jitter: v[1]}, StepSize: math.Sqrt(2 * h), Warmup: burnIn / max(1, leaps), AcceptanceRate: 0.8,
		}
	}
	if m.Warmup < 1 && m.Proposal.Validate() == nil {
		return m, errors.Errorf("train: %s: burn-in is %d epochs of one step each, wants at least the %d of a proposal: the step size adapts",
			c.samplerName(), burnIn, leaps)
	}
	return m, m.Validate()
}

// attachMetropolis adds a sampler with a Metropolis test. The first parameter's watched weight is traced as it is at the draws.
func (f *fitting) attachMetropolis(b *graph.Builder, posterior langevin.Posterior, loss *graph.Node) error {
	sampler, err := f.config.metropolis(f.plan.BurnIn, f.data.Len())
	if err != nil {
		return err
	}
	target := metropolis.Target{Potential: posterior.Potential(b, loss), Temperature: f.config.temperature()}
	if watched := f.watched(b); watched != nil {
		target.Quantities = []metropolis.Quantity{{Name: watchedMetric, Node: watched}}
	}
	f.walk, err = sampler.Attach(b, target)
	return err
}

// drawn are a chain's draw now: U/N, and the watched weight. Metrics of the loss are those of proposals.
func (f *fitting) drawn(chain int, step uint64) (loss, weight float64, err error) {
	var watched [1]float64
	if err := graph.Read(f.session, watchedMetric+".draw", chain, 0, watched[:]); err != nil {
		return 0, 0, err
	}
	return f.session.Metric(chain, f.columns[metropolis.TracePotential], step) / float64(f.data.Len()), watched[0], nil
}

// dtype is what the program computes in: energies that a test compares need float64.
func (c Config) dtype() tensor.DType {
	if c.isExact() {
		return tensor.Float64
	}
	return tensor.Float32
}
