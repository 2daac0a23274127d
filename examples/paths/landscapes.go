package main

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/report"
)

// rule is an optimizer with a learning rate; Adadelta has none.
type rule struct {
	optimizer optimizers.Optimizer
	rate      float64
}

// landscape is a function of two numbers, as a node of a graph and in Go. At its minimum it is 0.
type landscape struct {
	name      string
	node      func(b *graph.Builder, x, y *graph.Node) *graph.Node
	value     func(x, y float64) float64
	minimum   [2]float64
	start     [2]float64
	low, high [2]float64 // corners of the drawn rectangle
	levels    []float64
	steps     int
	rules     []rule
}

func squared(b *graph.Builder, x *graph.Node) *graph.Node { return b.Apply(op.Squared{}, x) }

// The optimizers that have their default hyperparameters on both landscapes.
var (
	adagrad = optimizers.Adagrad{Epsilon: 1e-8}
	rmsprop = optimizers.RMSProp{Decay: 0.9, Epsilon: 1e-8}
	adam    = optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
)

// landscapes returns the ravine x^2/2 + 25 y^2, whose curvatures are 1 and 50, and Rosenbrock's
// function (1 - x)^2 + 100 (y - x^2)^2.
func landscapes() []landscape {
	return []landscape{{
		name: "ravine",
		node: func(b *graph.Builder, x, y *graph.Node) *graph.Node {
			return b.Apply(op.Add{}, b.Apply(op.Scale{Factor: 0.5}, squared(b, x)), b.Apply(op.Scale{Factor: 25}, squared(b, y)))
		},
		value: func(x, y float64) float64 { return x*x/2 + 25*y*y },
		start: [2]float64{-4, 1}, low: [2]float64{-4.5, -1.5}, high: [2]float64{2, 1.5},
		levels: []float64{0.1, 0.5, 2, 5, 10, 20, 40}, steps: 200,
		rules: []rule{
			{optimizers.SGD{}, 0.037}, {optimizers.Momentum{Decay: 0.8}, 0.02}, {optimizers.Nesterov{Decay: 0.8}, 0.02},
			{adagrad, 0.7}, {rmsprop, 0.05}, {adam, 0.15}, {optimizers.Adadelta{Decay: 0.9, Epsilon: 1e-4}, 0},
		},
	}, {
		name: "rosenbrock",
		node: func(b *graph.Builder, x, y *graph.Node) *graph.Node {
			away := b.Apply(op.Scale{Factor: 1, Offset: -1}, x)
			across := b.Apply(op.Subtract{}, y, squared(b, x))
			return b.Apply(op.Add{}, squared(b, away), b.Apply(op.Scale{Factor: 100}, squared(b, across)))
		},
		value:   func(x, y float64) float64 { return (1-x)*(1-x) + 100*(y-x*x)*(y-x*x) },
		minimum: [2]float64{1, 1},
		start:   [2]float64{-1.2, 1}, low: [2]float64{-1.8, -0.7}, high: [2]float64{1.8, 2},
		levels: []float64{0.3, 2, 10, 40, 120, 300}, steps: 5000,
		rules: []rule{
			{optimizers.SGD{}, 0.001}, {optimizers.Momentum{Decay: 0.9}, 0.0005}, {optimizers.Nesterov{Decay: 0.9}, 0.0005},
			{adagrad, 0.5}, {rmsprop, 0.002}, {adam, 0.02}, {optimizers.Adadelta{Decay: 0.9, Epsilon: 1e-6}, 0},
		},
	}}
}

// grid returns the landscape on a grid, with the values of its level lines.
func (l landscape) grid() report.Levels {
	const cells = 200
	levels := report.Levels{Name: l.name, At: l.levels}
	for i := range cells + 1 {
		share := float64(i) / cells
		levels.X = append(levels.X, l.low[0]+share*(l.high[0]-l.low[0]))
		levels.Y = append(levels.Y, l.low[1]+share*(l.high[1]-l.low[1]))
	}
	for _, y := range levels.Y {
		for _, x := range levels.X {
			levels.Values = append(levels.Values, l.value(x, y))
		}
	}
	return levels
}
