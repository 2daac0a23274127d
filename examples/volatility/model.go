package main

import (
	"math"

	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// What the returns are made with.
const (
	trueDeviation = 0.15
	trueFreedom   = 10
	trueStart     = 0.01
)

// observations are daily log returns, Student-t with trueFreedom degrees of freedom, and the scales they were drawn with, whose logarithms walk
// at random.
func observations(days int) (returns, scales []float64) {
	steps, noise := make([]float64, days), make([]float64, days*(trueFreedom+1))
	random.Normals(steps, 0, random.Address{Seed: 1})
	random.Normals(noise, 0, random.Address{Seed: 1, Stream: 1})
	walk := math.Log(trueStart)
	for day, step := range steps {
		walk += trueDeviation * step
		scales = append(scales, math.Exp(walk))
		z := noise[day*(trueFreedom+1):][:trueFreedom+1]
		chiSquare := 0.0
		for _, x := range z[1:] {
			chiSquare += x * x
		}
		returns = append(returns, scales[day]*z[0]/math.Sqrt(chiSquare/trueFreedom))
	}
	return returns, scales
}

// target is the posterior of deviation ~ Exponential(10), freedom ~ Exponential(0.1), s_0 ~ N(0, 10^2), s_i ~ N(s_{i-1}, deviation^2), return_i ~
// Student-t(freedom, 0, exp(s_i)), as a density of the logarithms of the first two and of the walk's innovations (s_i - s_{i-1})/deviation,
// which depend on the deviation less than the walk does.
func target(b *graph.Builder, returns []float64) langevin.Target {
	const startDeviation = 10
	node, number := distributions.Node, distributions.Number
	startAt := func(first float64) graph.Initializer {
		return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { values[0] = first }
	}
	deviation, jacobian1 := distributions.Constrained(b, b.Parameter("log deviation", startAt(-2)), distributions.Exp{})
	freedom, jacobian2 := distributions.Constrained(b, b.Parameter("log freedom", startAt(2)), distributions.Exp{})
	innovations := b.Parameter("innovations", startAt(math.Log(trueStart)/startDeviation), len(returns))

	first, later := make([]float64, len(returns)), make([]float64, len(returns))
	for i := range later {
		later[i] = 1
	}
	first[0], later[0] = startDeviation, 0
	spread := b.Apply(op.Add{}, b.Table("first", first), b.Apply(op.Multiply{}, b.Table("later", later), deviation))
	scale := b.Apply(op.Exp{}, b.Apply(op.CumulativeSum{}, b.Apply(op.Multiply{}, spread, innovations)))
	logPosterior := distributions.Total(b,
		distributions.StudentT{Freedom: node(freedom), Scale: node(scale)}.LogProb(b, b.Table("returns", returns)),
		distributions.Normal{Deviation: number(1)}.LogProb(b, innovations),
		distributions.Exponential{Rate: number(10)}.LogProb(b, deviation), jacobian1,
		distributions.Exponential{Rate: number(0.1)}.LogProb(b, freedom), jacobian2)
	return langevin.Target{
		Potential: b.Apply(op.Negate{}, logPosterior), Temperature: 1,
		Quantities: []langevin.Quantity{{Name: "deviation", Node: deviation}, {Name: "freedom", Node: freedom}, {Name: "scale", Node: scale}},
	}
}
