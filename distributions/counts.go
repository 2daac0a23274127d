package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Poisson is the Poisson distribution of counts x = 0, 1, 2 ...:
//
//	ln P(x) = x ln rate - rate - ln x!
//
// x holds floats; one that is not a count gives NaN. In a log-linear model Rate is the Exp of a
// node.
type Poisson struct {
	Rate Value // the mean, above 0
}

// LogProb implements Distribution.
func (d Poisson) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "poisson")
	defer leave()
	rate, at := a.positive("Rate", d.Rate), a.count(math.Inf(1), x)
	return a.subtract(a.subtract(a.multiply(at, a.log(rate)), rate), a.logFactorial(at)).node
}

// NegativeBinomial is the negative binomial distribution of counts x = 0, 1, 2 ...: a Poisson
// distribution whose rate has a gamma distribution of the given shape and mean. With p =
// shape/(shape + mean) and s = shape:
//
//	ln P(x) = ln Gamma(x+s) - ln Gamma(s) - ln x! + s ln p + x ln(1 - p)
//
// The variance is mean + mean^2/shape. In SciPy's notation n is the shape and p is p. x holds
// floats; one that is not a count gives NaN.
type NegativeBinomial struct {
	Mean  Value // above 0
	Shape Value // above 0
}

// LogProb implements Distribution.
func (d NegativeBinomial) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "negative binomial")
	defer leave()
	mean, shape, at := a.positive("Mean", d.Mean), a.positive("Shape", d.Shape), a.count(math.Inf(1), x)
	logit := a.subtract(a.log(shape), a.log(mean)) // of p: ln p = -softplus(-logit)
	upper, lower := a.lgammaRatio(at, shape)
	constant := a.add(lower, a.multiply(shape, a.softplus(a.scaled(-1, logit, 0))))
	ways := a.subtract(upper, a.logFactorial(at))
	return a.subtract(a.subtract(ways, a.multiply(at, a.softplus(logit))), constant).node
}

// logFactorial returns ln v! of counts.
func (a algebra) logFactorial(v Value) Value {
	return Node(a.b.Apply(op.Lgamma{}, a.scaled(1, v, 1).node))
}

// stirlingFrom is where lgammaRatio changes to Stirling's series, whose next term is then 1e-18. A
// shape is unlikely to be exactly this number, at which the derivative would be 0.
const stirlingFrom = 97.3

// lgammaRatio returns two values whose difference is ln Gamma(x+s) - ln Gamma(s), for counts x and
// s above 0. Where s is large the two functions, and their derivatives, would have lost the digits
// of the difference: a Poisson distribution's. The first value is then the difference of Stirling's
// series ln Gamma(z) = (z - 1/2) ln z - z + ln(2 pi)/2 + 1/(12 z) - 1/(360 z^3) + 1/(1260 z^5),
//
//	(s - 1/2) ln(1 + x/s) + x ln(x+s) - x + tail(x+s) - tail(s)
//
// and the second one is 0. Source: DLMF 5.11.1.
func (a algebra) lgammaRatio(x, s Value) (upper, lower Value) {
	upper, lower = a.lgamma(a.add(x, s)), a.lgamma(s)
	if !s.isNode && s.number < stirlingFrom || a.b.Err() != nil {
		return upper, lower
	}
	large := s
	if s.isNode {
		large = Node(a.b.Apply(op.Clip{Low: stirlingFrom, High: math.Inf(1)}, s.node))
	}
	sum := a.add(x, large)
	series := a.multiply(a.scaled(1, large, -0.5), a.log1p(a.divide(x, large)))
	series = a.add(series, a.subtract(a.multiply(x, a.log(sum)), x))
	series = a.add(series, a.subtract(a.stirlingTail(sum), a.stirlingTail(large)))
	if !s.isNode {
		return series, Number(0)
	}
	isLarge := Node(a.b.Apply(op.Compare{Equal: true}, s.node, large.node))
	isSmall := a.scaled(-1, isLarge, 1)
	return a.add(a.multiply(isSmall, upper), a.multiply(isLarge, series)), a.multiply(isSmall, lower)
}

// stirlingTail returns 1/(12 z) - 1/(360 z^3) + 1/(1260 z^5).
func (a algebra) stirlingTail(z Value) Value {
	if !z.isNode {
		w := 1 / (z.number * z.number)
		return Number((1./12 - w*(1./360-w/1260)) / z.number)
	}
	w := a.squared(a.divide(Node(a.broadcastOver(Number(1), z)), z))
	inner := a.scaled(-1, a.multiply(w, a.scaled(-1./1260, w, 1./360)), 1./12)
	return a.divide(inner, z)
}
