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
	constant := a.add(a.lgamma(shape), a.multiply(shape, a.softplus(a.scaled(-1, logit, 0))))
	ways := a.subtract(a.lgamma(a.add(at, shape)), a.logFactorial(at))
	return a.subtract(a.subtract(ways, a.multiply(at, a.softplus(logit))), constant).node
}

// logFactorial returns ln v! of counts.
func (a algebra) logFactorial(v Value) Value {
	return Node(a.b.Apply(op.Lgamma{}, a.scaled(1, v, 1).node))
}
