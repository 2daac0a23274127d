package main

import (
	"context"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// chains is the number of chains of each sampler.
const chains = 4

// noUTurn samples the posterior with NUTS after a warm-up. gradients is the number of gradients
// that each chain computed.
func noUTurn(returns []float64, warmup, draws int) (r result, gradients int, err error) {
	r = result{method: "NUTS", bands: make([]estimate, len(returns))}
	b := graph.New(tensor.Float64)
	walk, err := mcmc.NUTS{StepSize: 0.2, Warmup: warmup, TargetAcceptance: 0.65}.Attach(b, target(b, returns))
	if err != nil {
		return r, 0, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(session *graph.Session) error {
		traces, err := walk.Sample(context.Background(), session, draws, 1)
		if err != nil {
			return err
		}
		gradients = int(session.Steps() + session.Evaluations())
		summarise := func(name string, e *estimate) error {
			values, err := traces.Of(name, 0)
			if err == nil {
				*e, err = mixed(values)
			}
			return err
		}
		if err := summarise("deviation", &r.std); err != nil {
			return err
		}
		if err := summarise("freedom", &r.freedom); err != nil {
			return err
		}
		for day := range r.bands {
			values, err := traces.Of("log scale", day)
			if err != nil {
				return err
			}
			r.bands[day] = estimateOf(slices.Concat(values...))
		}
		return nil
	})
	return r, gradients, err
}

// preconditioned samples the same posterior with pSGLD, whose preconditioner is frozen after
// burn-in. There is no Metropolis test, so steps must be small relative to the narrowest direction,
// which is ln deviation.
func preconditioned(returns []float64, steps int) (r result, err error) {
	const (
		rate     = 0.03
		thinning = 10
	)
	r.method = "pSGLD"
	b := graph.New(tensor.Float64)
	potential := target(b, returns).Potential
	plan := langevin.Plan{Steps: steps, BurnIn: steps / 5, Thinning: thinning}
	sampler := langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaFrozen, FreezeAt: plan.BurnIn}
	posterior := langevin.Posterior{DataSize: len(returns), Prior: langevin.Flat()} // the priors are in the potential
	if err := langevin.Attach(b, sampler, posterior, share(b, potential, len(returns)), []float64{posterior.StepSize(rate)}, []float64{1}); err != nil {
		return r, err
	}
	var traces *langevin.Traces
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(session *graph.Session) (err error) {
		traces, err = plan.Collect(context.Background(), session, []string{"log deviation", "log freedom"})
		return err
	})
	if err != nil {
		return r, err
	}
	if r.std, err = exponential(traces, "log deviation"); err != nil {
		return r, err
	}
	r.freedom, err = exponential(traces, "log freedom")
	return r, err
}

// exponential returns the estimate of the exponential of a scalar.
func exponential(traces *langevin.Traces, name string) (estimate, error) {
	chains, err := traces.Of(name, 0)
	if err != nil {
		return estimate{}, err
	}
	for _, values := range chains {
		for i, v := range values {
			values[i] = math.Exp(v)
		}
	}
	return mixed(chains)
}
