package main

import (
	"math"

	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Chains start around these values, at which the walk is smoothed.
const (
	startStd     = 0.1
	startFreedom = 10
)

// firstStd is the standard deviation of s_0.
const firstStd = 10

// joint adds the log density of the returns r [N] and of
//
//	deviation ~ Exponential(10), freedom ~ Exponential(0.1), s_0 ~ N(0, 10^2),
//	s_i ~ N(s_{i-1}, deviation^2), r_i ~ Student-t(freedom, 0, exp(s_i))
//
// as a density of the logarithms of deviation and freedom and of the walk s. The logarithms have
// the shape [] and s the shape [N]; with [R 1] and [R N] the result is the sum of R densities.
func joint(b *graph.Builder, returns []float64, logStd, logFreedom, walk *graph.Node) *graph.Node {
	std, jacobian1 := distributions.Constrained(b, logStd, distributions.Exp{})
	freedom, jacobian2 := distributions.Constrained(b, logFreedom, distributions.Exp{})
	first, later := make([]float64, len(returns)), make([]float64, len(returns))
	for i := range later {
		later[i] = 1
	}
	first[0], later[0] = 1.0/firstStd, 0
	perStd := b.Apply(op.Add{}, b.Table("first", first), b.Apply(op.Divide{}, b.Table("later", later), std))
	steps := b.Apply(op.Multiply{}, b.Apply(array.Difference{Axis: len(graph.ShapeOf(walk)) - 1}, walk), perStd)
	walkDensity := b.Apply(op.Scale{Factor: -0.5}, b.Apply(op.Sum{}, b.Apply(op.Squared{}, steps)))
	return distributions.Total(b, likelihood(b, returns, freedom, walk),
		walkDensity, b.Apply(op.Scale{Factor: -float64(len(returns) - 1)}, logStd),
		priors(b, std, freedom), jacobian1, jacobian2)
}

// likelihood adds the log density of the returns given freedom and the walk s [N], or the sum of R
// of them for s [R N].
func likelihood(b *graph.Builder, returns []float64, freedom, walk *graph.Node) *graph.Node {
	scaled := b.Apply(op.Divide{}, b.Table("returns", returns), b.Apply(op.Exp{}, walk))
	density := distributions.StudentT{DoF: distributions.Node(freedom), Scale: distributions.Number(1)}.LogProb(b, scaled)
	return distributions.Total(b, density, b.Apply(op.Negate{}, b.Apply(op.Sum{}, walk)))
}

// priors adds the log prior density of deviation and freedom.
func priors(b *graph.Builder, std, freedom *graph.Node) *graph.Node {
	return distributions.Total(b, distributions.Exponential{Rate: distributions.Number(10)}.LogProb(b, std),
		distributions.Exponential{Rate: distributions.Number(0.1)}.LogProb(b, freedom))
}

// target adds the posterior in a parametrisation whose curvatures are all near 1. The walk is
//
//	s_i = m_i + deviation x_i,    x_i = a x_{i-1} + innovation_i
//
// where m is the walk that fits the returns best, to first order in ln deviation around startStd,
// and a the correlation of its errors from one day to the next, see smooth. The parameters are the
// innovations and the logarithms of deviation and freedom. Any m and a give the same posterior.
// With m = 0 and a = 1, slow movements would have curvatures up to N^2 times those of fast ones.
// With the walk itself as the parameter, deviation could hardly move given the walk.
func target(b *graph.Builder, returns []float64) mcmc.Target {
	const turnStep = 0.1
	days := len(returns)
	logStd := b.Parameter("log deviation", startAround(math.Log(startStd), 0.2))
	logFreedom := b.Parameter("log freedom", startAround(math.Log(startFreedom), 0.2))
	innovations := b.Parameter("innovations", startAround(0, 1), days)

	center, memory := smooth(returns, startStd)
	wider, _ := smooth(returns, startStd*math.Exp(turnStep))
	narrower, _ := smooth(returns, startStd*math.Exp(-turnStep))
	turn := make([]float64, days)
	for i := range turn {
		turn[i] = (wider[i] - narrower[i]) / (2 * turnStep)
		center[i] -= turn[i] * math.Log(startStd)
	}
	before, after := make([]float64, days), make([]float64, days)
	for i := range before {
		before[i], after[i] = math.Pow(memory, -float64(i)), math.Pow(memory, float64(i))
	}
	before[0] = 1 / math.Sqrt(1-memory*memory)
	// x_i = a^i (sum over j <= i of a^-j innovation_j)
	sums := b.Apply(array.CumulativeSum{}, b.Apply(op.Multiply{}, b.Table("before", before), innovations))
	x := b.Apply(op.Multiply{}, b.Table("after", after), sums)
	std := b.Apply(op.Exp{}, logStd)
	middle := b.Apply(op.Add{}, b.Table("center", center), b.Apply(op.Multiply{}, b.Table("turn", turn), logStd))
	walk := b.Apply(op.Add{}, middle, b.Apply(op.Multiply{}, std, x))
	logPosterior := distributions.Total(b, joint(b, returns, logStd, logFreedom, walk), b.Apply(op.Scale{Factor: float64(days)}, logStd))
	return mcmc.Target{
		Potential: b.Apply(op.Negate{}, logPosterior), Temperature: 1,
		Quantities: []mcmc.Quantity{
			{Name: "deviation", Node: std}, {Name: "freedom", Node: b.Apply(op.Exp{}, logFreedom)}, {Name: "log scale", Node: walk},
		},
	}
}

// startAround initialises each chain with draws from N(mean, std^2).
func startAround(mean, std float64) graph.Initializer {
	return func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
		random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
		for i, z := range values {
			values[i] = mean + std*z
		}
	}
}

// share divides a total by parts: a potential by the number of returns, as samplers on minibatches
// expect it, or a density by the number of replicas.
func share(b *graph.Builder, total *graph.Node, parts int) *graph.Node {
	return b.Apply(op.Scale{Factor: 1 / float64(parts)}, total)
}
