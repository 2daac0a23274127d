package langevin

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// MisjudgedPSGLD is PSGLD whose Gamma is wrong by a factor.
type MisjudgedPSGLD struct {
	PSGLD
	Factor float64
}

func (m MisjudgedPSGLD) differentiate(b *graph.Builder, loss *graph.Node, parameters []*graph.Node) (Sampler, []*graph.Node) {
	sampler, gradients := m.PSGLD.differentiate(b, loss, parameters)
	for parameter, diagonal := range sampler.(curvedPSGLD).diagonals {
		sampler.(curvedPSGLD).diagonals[parameter] = b.Apply(op.Scale{Factor: m.Factor}, diagonal)
	}
	return sampler, gradients
}

// SlopeAndCurvature are the prior's first and second derivatives, over N.
func SlopeAndCurvature(p Prior, dataSize int, theta float64) (slope, curvature float64) {
	s, g := p.term(dataSize), []float64{0}
	s.fill(g, []float64{theta}, []float64{0})
	return g[0], s.curvature(theta)
}

// UBUCoefficients returns the coefficients of UBU for a friction.
var UBUCoefficients = ubuCoefficients

// The two ways to compute a relaxation.
var Relaxation, ElementRelaxation = relaxation, elementRelaxation
