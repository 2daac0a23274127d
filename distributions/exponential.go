package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
)

// Exponential is the exponential distribution on x >= 0, of mean 1/rate:
//
//	ln p(x) = ln rate - rate x
type Exponential struct {
	Rate Value // above 0
}

var _ Reparameterised = Exponential{}

// LogProb implements Distribution.
func (d Exponential) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "exponential")
	defer leave()
	rate := a.positive("Rate", d.Rate)
	return a.subtract(a.log(rate), a.multiply(rate, a.inSupport(0, math.Inf(1), x))).node
}

// RSample implements Reparameterised: -ln(u) / rate with u uniform.
func (d Exponential) RSample(b *graph.Builder, shape ...int) *graph.Node {
	a, leave := enter(b, "exponential")
	defer leave()
	return a.sample(a.divide(a.exponential(shape), a.positive("Rate", d.Rate)), shape)
}
