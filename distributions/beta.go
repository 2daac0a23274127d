package distributions

import "github.com/pollen-ml/pollen/graph"

// Beta is the beta distribution on 0 <= x <= 1, of mean a/(a+b):
//
//	ln p(x) = (a - 1) ln x + (b - 1) ln(1 - x) + ln Gamma(a+b) - ln Gamma(a) - ln Gamma(b)
//
// Where A is a node of value 1, ln p is NaN at x = 0, and where B is such a node, at x = 1. Beta{A:
// Number(1), B: Number(1)} is uniform.
type Beta struct {
	A Value // above 0
	B Value // above 0
}

// LogProb implements Distribution.
func (d Beta) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "beta")
	defer leave()
	low, high := a.positive("A", d.A), a.positive("B", d.B)
	at := a.inSupport(0, 1, x)
	lower := a.multiply(a.scaled(1, low, -1), a.log(at))
	upper := a.multiply(a.scaled(1, high, -1), a.log1p(a.scaled(-1, at, 0)))
	constant := a.subtract(a.lgamma(a.add(low, high)), a.add(a.lgamma(low), a.lgamma(high)))
	return a.broadcastOver(a.add(a.add(lower, upper), constant), at)
}
