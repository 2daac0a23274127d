package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
)

// Laplace is the Laplace distribution:
//
//	ln p(x) = -|x - location| / scale - ln(2 scale)
//
// The derivative is taken as 0 where x is the location.
type Laplace struct {
	Location Value
	Scale    Value // above 0
}

var _ Reparameterised = Laplace{}

// LogProb implements Distribution.
func (d Laplace) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "laplace")
	defer leave()
	location, scale := d.parameters(a)
	z := a.standardised(a.argument(x), location, scale)
	return a.subtract(a.scaled(-1, a.log(scale), -math.Ln2), a.abs(z)).node
}

// RSample implements Reparameterised: location + scale (e1 - e2) with e1 and e2 standard
// exponential.
func (d Laplace) RSample(b *graph.Builder, shape ...int) *graph.Node {
	a, leave := enter(b, "laplace")
	defer leave()
	location, scale := d.parameters(a)
	difference := a.subtract(a.exponential(shape), a.exponential(shape))
	return a.sample(a.add(location, a.multiply(scale, difference)), shape)
}

func (d Laplace) parameters(a algebra) (location, scale Value) {
	return a.finite("Location", d.Location), a.positive("Scale", d.Scale)
}
