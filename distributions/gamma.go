package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
)

// Gamma is the gamma distribution on x >= 0, of mean shape/rate:
//
//	ln p(x) = shape ln rate - ln Gamma(shape) + (shape - 1) ln x - rate x
//
// Where Shape is a node of value 1, ln p is NaN at x = 0.
type Gamma struct {
	Shape Value // above 0
	Rate  Value // above 0
}

// LogProb implements Distribution.
func (d Gamma) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "gamma")
	defer leave()
	shape, rate := a.positive("Shape", d.Shape), a.positive("Rate", d.Rate)
	at := a.inSupport(0, math.Inf(1), x)
	power := a.multiply(a.scaled(1, shape, -1), a.log(at))
	constant := a.subtract(a.multiply(shape, a.log(rate)), a.lgamma(shape))
	return a.add(a.subtract(power, a.multiply(rate, at)), constant).node
}
