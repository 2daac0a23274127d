package op

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Whole is y = x where x is a whole number, else NaN, elementwise: x [...] -> y [...]. It has no
// gradient: x is data. The probabilities of counts use it, so that an argument that is not a count
// is detected, see graph.NotFinite.
type Whole struct{}

// Name implements graph.Op.
func (Whole) Name() string { return "whole" }

// Shape implements graph.Op.
func (Whole) Shape(in []tensor.Shape) (tensor.Shape, error) { return unaryShape(in) }

// Lower implements graph.Op.
func (w Whole) Lower(l *graph.Lowering) { lowerUnary(l, w.unary()) }

// StopGradient implements graph.StopGradient.
func (Whole) StopGradient() {}

func (w Whole) unary() unary {
	return unary{
		name: w.Name(),
		value: func(x float64) float64 {
			if x == math.RoundToEven(x) {
				return x
			}
			return math.NaN()
		},
	}
}
