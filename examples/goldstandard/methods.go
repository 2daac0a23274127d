package main

import (
	"slices"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

const (
	batch        = 32
	steps        = 20000
	chainsOfEach = 4   // of each sampler
	perChain     = 100 // samples of each of these
	cycles       = 4
	members      = 10
	dropoutRate  = 0.2
	passes       = 50 // of dropout, and draws from SWAG and Bayes by Backprop
	swagRank     = 20
)

// method is a way to approximate the posterior's predictions.
type method struct {
	name string
	run  func(s *study) ([]float64, error)
}

var methods = []method{
	{"SGD", func(s *study) ([]float64, error) { return s.descend(1, 1, 0) }},
	{"deep ensemble", func(s *study) ([]float64, error) { return s.descend(members, 1, 0) }},
	{"MC dropout", func(s *study) ([]float64, error) { return s.descend(1, s.scaled(passes), dropoutRate) }},
	{"SWAG", (*study).swag},
	{"Bayes by Backprop", (*study).backprop},
	{"SGLD", sampled(langevin.SGLD{}, optimizers.Constant{Rate: 0.005}, 0)},
	{"pSGLD, Gamma none", sampled(langevin.PSGLD{Alpha: 0.99, Lambda: 1e-2, Gamma: langevin.GammaNone}, optimizers.Constant{Rate: 1e-4}, 0)},
	{"pSGLD, Gamma by Hutchinson", sampled(langevin.PSGLD{Alpha: 0.99, Lambda: 1e-2, Gamma: langevin.GammaHutchinson}, optimizers.Constant{Rate: 1e-4}, 0)},
	{"pSGLD, G frozen", sampled(langevin.PSGLD{Alpha: 0.99, Lambda: 1e-2, Gamma: langevin.GammaFrozen}, optimizers.Constant{Rate: 1e-4}, 0)},
	{"SGHMC", sampled(langevin.SGHMC{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"cyclical SGHMC", sampled(langevin.SGHMC{Friction: 0.1}, optimizers.Cyclical{Initial: 2e-3, Cycles: cycles}, cycles)},
	{"BAOAB", sampled(langevin.BAOAB{Friction: 0.1}, optimizers.Constant{Rate: 1e-3}, 0)},
	{"SGNHT", sampled(langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB}, optimizers.Constant{Rate: 1e-3}, 0)},
}

// sampled averages over chains at temperature 1 after the first quarter of them, or of each cycle, weighted by the learning rates, which are
// those on the mean loss.
func sampled(rule langevin.Sampler, schedule optimizers.Schedule, cycles int) func(s *study) ([]float64, error) {
	return func(s *study) ([]float64, error) {
		n := s.scaled(steps)
		rates, err := schedule.Rates(n)
		if err != nil {
			return nil, err
		}
		plan := langevin.Plan{Steps: n, BurnIn: n / 4 / max(1, cycles), Thinning: max(1, 3*n/4/max(2*cycles, s.scaled(perChain))), Cycles: cycles}
		if p, ok := rule.(langevin.PSGLD); ok && p.Gamma == langevin.GammaFrozen {
			p.FreezeAt = plan.BurnIn
			rule = p
		}
		temperatures, err := plan.Temperatures(rule, 1)
		if err != nil {
			return nil, err
		}
		network, err := layers.New(model, classes)
		if err != nil {
			return nil, err
		}
		p, err := s.predictions(network)
		if err != nil {
			return nil, err
		}
		defer p.predictor.Close()
		err = s.sample(network, rule, plan, chainsOfEach, rates, temperatures, func(session *graph.Session, chain int) error {
			sample, err := samples.Take(session, chain, rates[session.Steps()-1])
			if err != nil {
				return err
			}
			return p.add(sample)
		})
		return p.mean.Mean(), err
	}
}

// sample runs chains and has each of their samples used.
func (s *study) sample(network layers.Sequential, rule langevin.Sampler, plan langevin.Plan, chains int, rates, temperatures []float64,
	use func(session *graph.Session, chain int) error,
) error {
	b := graph.New(tensor.Float32)
	x, labels := op.Minibatch(b, op.Batch{Size: batch, Shuffled: true}, s.shape(), s.train.Mean, s.train.Deviation)
	loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), labels)
	if err := langevin.Attach(b, rule, posterior, loss, posterior.StepSizes(rates), temperatures); err != nil {
		return err
	}
	return s.walk(b, plan, chains, use)
}

func (s *study) walk(b *graph.Builder, plan langevin.Plan, chains int, use func(session *graph.Session, chain int) error) error {
	session, err := s.session(b, 1, chains)
	if err != nil {
		return err
	}
	defer session.Close()
	return plan.Run(s.ctx, session, graph.MetricRows, func(p langevin.Progress) error {
		for chain := 0; p.Sample && chain < chains; chain++ {
			if err := use(session, chain); err != nil {
				return err
			}
		}
		return nil
	})
}

// descend averages over the solutions that SGD finds from different starts, each predicting some times, which makes a difference with dropout only.
// The prior is its weight decay.
func (s *study) descend(members, passes int, dropout float64) ([]float64, error) {
	network, err := layers.New(model, classes)
	if err != nil {
		return nil, err
	}
	if dropout > 0 {
		last := len(network) - 1
		network = slices.Insert(network, last, layers.Layer(layers.Dropout{Rate: dropout, AlsoPredicting: true}))
	}
	p, err := s.predictions(network)
	if err != nil {
		return nil, err
	}
	defer p.predictor.Close()
	n := s.scaled(steps / 4)
	rates, err := optimizers.Cosine{First: 0.05}.Rates(n)
	if err != nil {
		return nil, err
	}
	plan := langevin.Plan{Steps: n, BurnIn: n - 1, Thinning: 1}
	err = s.sample(network, langevin.SGLD{}, plan, members, rates, make([]float64, n), func(session *graph.Session, chain int) error {
		solution, err := samples.Take(session, chain, 1)
		for range passes {
			if err == nil {
				err = p.add(solution)
			}
		}
		return err
	})
	return p.mean.Mean(), err
}

// swag draws from the Gaussian of the states that SGD passes through at a constant rate.
func (s *study) swag() ([]float64, error) {
	network, err := layers.New(model, classes)
	if err != nil {
		return nil, err
	}
	gaussian, err := approximate.NewSWAG(1, swagRank)
	if err != nil {
		return nil, err
	}
	n := max(4*swagRank, s.scaled(steps/4))
	plan := langevin.Plan{Steps: n, BurnIn: n / 2, Thinning: n / 2 / (2 * swagRank)}
	err = s.sample(network, langevin.SGLD{}, plan, 1, slices.Repeat([]float64{0.05}, n), make([]float64, n), func(session *graph.Session, chain int) error {
		state, err := samples.Take(session, chain, 1)
		if err != nil {
			return err
		}
		return gaussian.Collect(state)
	})
	if err != nil {
		return nil, err
	}
	return s.average(network, gaussian.Draw)
}

// average predicts by draws.
func (s *study) average(network layers.Sequential, draw func(draw int) (samples.Sample, error)) ([]float64, error) {
	p, err := s.predictions(network)
	if err != nil {
		return nil, err
	}
	defer p.predictor.Close()
	for i := range s.scaled(passes) {
		sample, err := draw(i)
		if err != nil {
			return nil, err
		}
		if err := p.add(sample); err != nil {
			return nil, err
		}
	}
	return p.mean.Mean(), nil
}

// backprop fits independent normals to the posterior.
func (s *study) backprop() (mean []float64, err error) {
	network, err := layers.New(model, classes)
	if err != nil {
		return nil, err
	}
	b := graph.New(tensor.Float32)
	x, labels := op.Minibatch(b, op.Batch{Size: batch, Shuffled: true}, s.shape(), s.train.Mean, s.train.Deviation)
	v := approximate.BayesByBackprop{Posterior: posterior, InitialDeviation: 0.05, ClosedForm: true, LocalReparameterization: true}
	logits, q := v.Apply(b, network.Apply, x)
	if b.Err() != nil {
		return nil, b.Err()
	}
	loss, divergence := v.Loss(b, q, b.Apply(op.CrossEntropy{}, logits, labels))
	n := s.scaled(steps)
	rates, err := optimizers.Cosine{First: 0.003}.Rates(n)
	if err != nil {
		return nil, err
	}
	parameters := b.Parameters()
	optimizers.Update(b, optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, parameters, b.Gradients(loss, parameters...), b.Table("rates", rates))
	b.Record("divergence", divergence)
	plan := langevin.Plan{Steps: n, BurnIn: n - 1, Thinning: 1}
	err = s.walk(b, plan, 1, func(session *graph.Session, chain int) error {
		mean, err = s.average(network, func(draw int) (samples.Sample, error) { return q.Draw(session, chain, draw) })
		return err
	})
	return mean, err
}
