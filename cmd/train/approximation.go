package main

import (
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// statesFolder holds the states that SWAG's Gaussian is made of, beside the samples that are drawn from it.
const statesFolder = "states"

// statesPerRank is how many states SWAG collects for each of its columns, and diagonalStates how many without columns.
const (
	statesPerRank  = 2
	diagonalStates = 40
)

func (c Config) newSWAG() (*approximate.SWAG, error) {
	v, err := c.attributes()
	if err != nil {
		return nil, err
	}
	rank := int(v[0])
	if float64(rank) != v[0] {
		return nil, errors.Errorf("train: swag: RANK is %v, wants an integer", v[0])
	}
	return approximate.NewSWAG(c.Seed, rank)
}

// states is how many states of each chain are kept at even distances after burn-in.
func (c Config) states() int {
	if c.samplerName() != swagName {
		return *c.Samples
	}
	if v, err := c.attributes(); err == nil && v[0] >= 1 {
		return statesPerRank * int(v[0])
	}
	return diagonalStates
}

// backprop is the approximation of Bayes by Backprop: with the closed form of the divergence where there is one.
func (c Config) backprop(posterior langevin.Posterior) (approximate.BayesByBackprop, error) {
	v, err := c.attributes()
	if err != nil {
		return approximate.BayesByBackprop{}, err
	}
	return approximate.BayesByBackprop{
		Posterior: posterior, InitialDeviation: v[0],
		ClosedForm: posterior.Prior.Kind == langevin.GaussianPrior, LocalReparameterization: true,
	}, nil
}

// attachBackprop makes the network's weights random, and lets Adam fit their distribution.
func (f *fitting) attachBackprop(b *graph.Builder, posterior langevin.Posterior, network layers.Sequential, x, labels *graph.Node,
) (logits, loss *graph.Node, err error) {
	v, err := f.config.backprop(posterior)
	if err != nil {
		return nil, nil, err
	}
	logits, f.meanField = v.Apply(b, network.Apply, x)
	if b.Err() != nil {
		return nil, nil, b.Err()
	}
	loss = b.Apply(op.CrossEntropy{}, logits, labels)
	bound, _ := v.Loss(b, f.meanField, loss)
	parameters := b.Parameters()
	adam := optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	optimizers.Update(b, adam, parameters, b.Gradients(bound, parameters...), b.Table("rates", f.rates))
	return logits, loss, b.Err()
}

// conclude draws the samples of the approximations that are drawn from when they are done. What was drawn before is drawn again, alike.
func (f *fitting) conclude() error {
	switch f.config.samplerName() {
	case backpropName:
		return f.draw(func(chain, draw int) (samples.Sample, error) { return f.meanField.Draw(f.session, chain, draw) })
	case swagName:
		gaussians, err := f.gaussians()
		if err != nil {
			return err
		}
		return f.draw(func(chain, draw int) (samples.Sample, error) { return gaussians[chain].Draw(draw) })
	}
	return nil
}

func (f *fitting) draw(draw func(chain, draw int) (samples.Sample, error)) error {
	f.result.samples = 0
	for chain := range f.config.Chains {
		for i := range *f.config.Samples {
			sample, err := draw(chain, i)
			if err != nil {
				return err
			}
			if err := f.bank.Add(sample); err != nil {
				return err
			}
			f.result.samples++
		}
	}
	return nil
}

// gaussians are SWAG's, one for each chain, of the states in the run's folder.
func (f *fitting) gaussians() ([]*approximate.SWAG, error) {
	files, err := f.statesBank.Files()
	if err != nil {
		return nil, err
	}
	gaussians := make([]*approximate.SWAG, f.config.Chains)
	for chain := range gaussians {
		if gaussians[chain], err = f.config.newSWAG(); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		state, err := samples.ReadSample(file)
		if err != nil {
			return nil, err
		}
		if state.Chain >= len(gaussians) {
			return nil, errors.Errorf("train: %s is of chain %d, wants fewer than %d", file, state.Chain, len(gaussians))
		}
		if err := gaussians[state.Chain].Collect(state); err != nil {
			return nil, errors.WithMessage(err, file)
		}
	}
	return gaussians, nil
}

// statesBank is where SWAG's states are.
func statesBank(folder string) *samples.Bank {
	return samples.NewBank(filepath.Join(folder, statesFolder))
}
