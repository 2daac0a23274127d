package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Normal is the normal distribution:
//
//	ln p(x) = -((x - mean) / std)^2 / 2 - ln std - ln(2 pi) / 2
type Normal struct {
	Mean Value
	Std  Value // the standard deviation, above 0
}

var _ Reparameterised = Normal{}

// LogProb implements Distribution.
func (d Normal) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "normal")
	defer leave()
	mean, std := d.parameters(a)
	z := a.standardised(a.argument(x), mean, std)
	constant := a.scaled(-1, a.log(std), -0.5*math.Log(2*math.Pi))
	return a.subtract(constant, a.scaled(0.5, a.squared(z), 0)).node
}

// RSample implements Reparameterised: mean + std z, with z standard normal.
func (d Normal) RSample(b *graph.Builder, shape ...int) *graph.Node {
	a, leave := enter(b, "normal")
	defer leave()
	mean, std := d.parameters(a)
	return a.sample(a.add(mean, a.multiply(std, a.noise(op.NormalNoise, shape))), shape)
}

func (d Normal) parameters(a algebra) (mean, std Value) {
	return a.finite("Mean", d.Mean), a.positive("Std", d.Std)
}
