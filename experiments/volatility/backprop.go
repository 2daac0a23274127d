package main

import (
	"context"
	"math"

	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// fit has the settings of Bayes by Backprop.
type fit struct {
	replicas, epochs, burnIn int
	rate                     float64 // h up to the end of burn-in; then rate (1+k)^-0.55, k = 1, 2 ...
}

// rates returns h for each epoch.
func (f fit) rates() []float64 {
	rates := make([]float64, f.epochs)
	for i := range rates {
		rates[i] = f.rate * math.Pow(float64(max(1, i-f.burnIn+2)), -0.55)
	}
	return rates
}

// bayesByBackprop makes the fit that Keng published ("Bayesian learning via stochastic gradient
// Langevin dynamics and Bayes by Backprop", 2023, with its notebook). Deviation and freedom are
// point values. For the walk, q has independent steps N(mean_i, deviation^2), with the walk's own
// deviation. pSGLD samples deviation, freedom, the means and s_0 at temperature 1, with gradients
// of
//
//	E_q[ln p(returns | walk, freedom)] + N ln deviation + (ln p(deviation) + ln p(freedom))/R
//
// The first term is the mean over R replicas of the walk, the second the entropy of q, and the
// third the priors, also divided by R. This is not a bound of the evidence, because it lacks
//
//	E_q[ln p(walk | deviation)] = -N ln deviation - sum mean_i^2 / (2 deviation^2)
//
// each up to a constant. Without this term, deviation is not how far the walk moves in a day, but
// how wide q can be before the returns become improbable: 0.026 for the S&P 500. The published
// freedom of 9.75 has not converged from its initial value 10.
func bayesByBackprop(returns []float64, f fit) (r result, err error) {
	const level, spread = -4.5, 1e-4 // initial s_0, and initial spread of the means
	n := len(returns)
	b := graph.New(tensor.Float32)
	std, freedom := b.Parameter("deviation", startAround(startStd, 0), 1), b.Parameter("freedom", startAround(startFreedom, 0), 1)
	first, means := b.Parameter("first", startAround(level, 0), 1), b.Parameter("means", startAround(0, spread), n)
	noise := b.Apply(op.Noise{Stream: b.Stream(), As: op.ViewAs(f.replicas, n)}, b.Header())
	steps := b.Apply(op.Add{}, means, b.Apply(op.Multiply{}, std, noise))
	walk := b.Apply(op.Add{}, first, b.Apply(array.CumulativeSum{Axis: 1}, steps))
	entropy := b.Apply(op.Scale{Factor: float64(n)}, b.Apply(op.Sum{}, b.Apply(op.Log{}, std)))
	perWalk := share(b, distributions.Total(b, likelihood(b, returns, freedom, walk), priors(b, std, freedom)), f.replicas)
	loss := b.Apply(op.Negate{}, b.Apply(op.Add{}, perWalk, entropy))

	sampler := langevin.PSGLD{Alpha: 0.99, Lambda: 1e-8, Gamma: langevin.GammaNone}
	plan := langevin.Plan{Steps: f.epochs, BurnIn: f.burnIn, Thinning: 1}
	temperatures, err := plan.Temperatures(sampler, 1)
	if err != nil {
		return r, err
	}
	posterior := langevin.Posterior{DataSize: 1, Prior: langevin.Flat()} // the loss is of all data and includes the priors
	if err := langevin.Attach(b, sampler, posterior, loss, f.rates(), temperatures); err != nil {
		return r, err
	}
	stds, freedoms, walks := make([]float64, 0, f.epochs), make([]float64, 0, f.epochs), make([][]float64, n)
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: 1}, func(session *graph.Session) error {
		return plan.Run(context.Background(), session, 1, func(p langevin.Window) error {
			if !p.Sample {
				return nil
			}
			drawn := map[string][]float32{"deviation": {0}, "freedom": {0}, "first": {0}, "means": make([]float32, n)}
			for name, values := range drawn {
				if err := graph.Read(session, name, 0, 0, values); err != nil {
					return err
				}
			}
			stds, freedoms = append(stds, float64(drawn["deviation"][0])), append(freedoms, float64(drawn["freedom"][0]))
			at := float64(drawn["first"][0])
			for day, mean := range drawn["means"] {
				at += float64(mean)
				walks[day] = append(walks[day], at)
			}
			return nil
		})
	})
	if err != nil {
		return r, err
	}
	r = result{method: "Bayes by Backprop, published", std: estimateOf(stds), freedom: estimateOf(freedoms)}
	for _, draws := range walks {
		r.bands = append(r.bands, estimateOf(draws))
	}
	return r, nil
}
