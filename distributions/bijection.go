package distributions

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Bijection is a smooth one-to-one function y(x) of a number, applied element by element.
type Bijection interface {
	// Forward returns y, for every real x.
	Forward(b *graph.Builder, x *graph.Node) *graph.Node
	// Inverse returns x, NaN where there is none.
	Inverse(b *graph.Builder, y *graph.Node) *graph.Node
	// LogDeterminant returns ln |dy/dx| at x, of the shape of y.
	LogDeterminant(b *graph.Builder, x *graph.Node) *graph.Node
}

// Constrained returns a parameter in the range of a bijection as a function of an unconstrained
// one: the constrained value y = f(x), for priors and likelihoods, and ln |dy/dx|, which must be
// added to the log posterior to make it a density of x.
func Constrained(b *graph.Builder, parameter *graph.Node, bijection Bijection) (value, logJacobian *graph.Node) {
	if bijection == nil {
		b.Fail(errors.New("distributions: constrained: the bijection must not be nil"))
		return parameter, parameter
	}
	return bijection.Forward(b, parameter), bijection.LogDeterminant(b, parameter)
}

// Exp is y = e^x, which is positive.
type Exp struct{}

// Forward implements Bijection.
func (Exp) Forward(b *graph.Builder, x *graph.Node) *graph.Node { return b.Apply(op.Exp{}, x) }

// Inverse implements Bijection.
func (Exp) Inverse(b *graph.Builder, y *graph.Node) *graph.Node { return b.Apply(op.Log{}, y) }

// LogDeterminant implements Bijection: it is x.
func (Exp) LogDeterminant(_ *graph.Builder, x *graph.Node) *graph.Node { return x }

// Softplus is y = ln(1 + e^x), which is positive, and close to x where x is large.
type Softplus struct{}

// Forward implements Bijection.
func (Softplus) Forward(b *graph.Builder, x *graph.Node) *graph.Node {
	return b.Apply(op.Softplus{}, x)
}

// Inverse implements Bijection.
func (Softplus) Inverse(b *graph.Builder, y *graph.Node) *graph.Node {
	return b.Apply(op.SoftplusInverse{}, y)
}

// LogDeterminant implements Bijection: it is -ln(1 + e^-x).
func (Softplus) LogDeterminant(b *graph.Builder, x *graph.Node) *graph.Node {
	return b.Apply(op.Negate{}, b.Apply(op.Softplus{}, b.Apply(op.Negate{}, x)))
}

// Interval is y = low + (high - low) / (1 + e^-x), which lies between low and high; Interval{High:
// 1} is the logistic function.
type Interval struct {
	Low, High float64
}

// Forward implements Bijection.
func (i Interval) Forward(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := i.enter(b)
	defer leave()
	return a.between(i.Low, i.High, Node(b.Apply(op.Sigmoid{}, x))).node
}

// Inverse implements Bijection: ln(y - low) - ln(high - y).
func (i Interval) Inverse(b *graph.Builder, y *graph.Node) *graph.Node {
	a, leave := i.enter(b)
	defer leave()
	at := a.argument(y)
	return a.subtract(a.log(a.scaled(1, at, -i.Low)), a.log(a.scaled(-1, at, i.High))).node
}

// LogDeterminant implements Bijection: ln(high - low) - ln(1 + e^x) - ln(1 + e^-x).
func (i Interval) LogDeterminant(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := i.enter(b)
	defer leave()
	up, down := Node(b.Apply(op.Softplus{}, x)), Node(b.Apply(op.Softplus{}, b.Apply(op.Negate{}, x)))
	return a.scaled(-1, a.add(up, down), math.Log(i.High-i.Low)).node
}

func (i Interval) enter(b *graph.Builder) (algebra, func()) {
	a, leave := enter(b, "interval")
	a.width(i.Low, i.High)
	return a, leave
}

// Affine is y = shift + scale x.
type Affine struct {
	Shift Value
	Scale Value // not 0
}

// Forward implements Bijection.
func (f Affine) Forward(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave, shift, scale := f.enter(b)
	defer leave()
	return a.add(shift, a.multiply(scale, a.argument(x))).node
}

// Inverse implements Bijection.
func (f Affine) Inverse(b *graph.Builder, y *graph.Node) *graph.Node {
	a, leave, shift, scale := f.enter(b)
	defer leave()
	return a.standardised(a.argument(y), shift, scale).node
}

// LogDeterminant implements Bijection: ln |scale|.
func (f Affine) LogDeterminant(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave, _, scale := f.enter(b)
	defer leave()
	return a.broadcastOver(a.log(a.abs(scale)), a.argument(x))
}

func (f Affine) enter(b *graph.Builder) (a algebra, leave func(), shift, scale Value) {
	a, leave = enter(b, "affine")
	shift, scale = a.finite("Shift", f.Shift), a.finite("Scale", f.Scale)
	if !scale.isNode && scale.number == 0 && b.Err() == nil {
		a.fail("Scale must not be 0")
	}
	return a, leave, shift, scale
}
