package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Normal is the normal distribution:
//
//	ln p(x) = -((x - mean) / deviation)^2 / 2 - ln deviation - ln(2 pi) / 2
type Normal struct {
	Mean      Value
	Deviation Value // the standard deviation, above 0
}

var _ Reparameterised = Normal{}

// LogProb implements Distribution.
func (d Normal) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "normal")
	defer leave()
	mean, deviation := d.parameters(a)
	z := a.standardised(a.argument(x), mean, deviation)
	constant := a.scaled(-1, a.log(deviation), -0.5*math.Log(2*math.Pi))
	return a.subtract(constant, a.scaled(0.5, a.squared(z), 0)).node
}

// RSample implements Reparameterised: mean + deviation z with z standard normal.
func (d Normal) RSample(b *graph.Builder, shape ...int) *graph.Node {
	a, leave := enter(b, "normal")
	defer leave()
	mean, deviation := d.parameters(a)
	return a.sample(a.add(mean, a.multiply(deviation, a.noise(op.NormalNoise, shape))), shape)
}

func (d Normal) parameters(a algebra) (mean, deviation Value) {
	return a.finite("Mean", d.Mean), a.positive("Deviation", d.Deviation)
}
