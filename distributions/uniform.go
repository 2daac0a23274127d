package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Uniform is the uniform distribution on low <= x <= high:
//
//	ln p(x) = -ln(high - low)
type Uniform struct {
	Low, High float64 // finite, Low below High
}

var _ Reparameterised = Uniform{}

// LogProb implements Distribution.
func (d Uniform) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "uniform")
	defer leave()
	width := a.width(d.Low, d.High)
	return a.broadcastOver(Number(-math.Log(width)), a.inSupport(d.Low, d.High, x))
}

// RSample implements Reparameterised: low + (high - low) u, with u uniform between 0 and 1, not
// rounded out of the support.
func (d Uniform) RSample(b *graph.Builder, shape ...int) *graph.Node {
	a, leave := enter(b, "uniform")
	defer leave()
	return a.sample(a.between(d.Low, d.High, a.noise(op.UniformNoise, shape)), shape)
}
