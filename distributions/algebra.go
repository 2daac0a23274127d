package distributions

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// algebra builds expressions of values: numbers are computed at once, in float64, and nodes become
// ops.
type algebra struct {
	b    *graph.Builder
	name string // of the distribution or bijection, for errors
}

// enter scopes the nodes that follow by name until leave is called.
func enter(b *graph.Builder, name string) (a algebra, leave func()) {
	return algebra{b, name}, b.Scope(name)
}

// fail reports a message as the builder's error.
func (a algebra) fail(format string, arguments ...any) {
	a.b.Fail(errors.Errorf("distributions: "+a.name+": "+format, arguments...))
}

// finite returns v, which must be a finite number or a node of the graph's float type.
func (a algebra) finite(field string, v Value) Value {
	if a.b.Err() != nil {
		return v
	}
	switch {
	case v.isNode && v.node == nil:
		a.fail("%s must not be a nil node", field)
	case v.isNode && graph.DTypeOf(v.node) != a.b.DType():
		a.fail("%s must be a node of %v, as the graph, got %v", field, a.b.DType(), graph.DTypeOf(v.node))
	case v.number-v.number != 0:
		a.fail("%s must be finite, got %v", field, v.number)
	}
	return v
}

// positive is finite that also requires a number to be above 0.
func (a algebra) positive(field string, v Value) Value {
	if !v.isNode && v.number <= 0 && a.b.Err() == nil {
		a.fail("%s must be positive, got %v", field, v.number)
	}
	return a.finite(field, v)
}

// width returns high - low, which must be positive and finite.
func (a algebra) width(low, high float64) float64 {
	width := high - low
	if !(width > 0 && width < math.Inf(1)) && a.b.Err() == nil {
		a.fail("Low and High must be finite, Low below High, got %v and %v", low, high)
	}
	return width
}

// between returns low + (high - low) u of a node u between 0 and 1, from low to high. The sum may
// round to a number above high, unless low is 0.
func (a algebra) between(low, high float64, u Value) Value {
	y := a.scaled(a.width(low, high), u, low)
	if low == 0 || a.b.Err() != nil {
		return y
	}
	return Node(a.b.Apply(op.Clip{Low: low, High: high}, y.node))
}

// argument returns the node x of a density or a bijection as a Value.
func (a algebra) argument(x *graph.Node) Value { return a.finite("the argument", Node(x)) }

// inSupport returns x as a Value that is NaN outside a support. The error of a run that stops there
// has the scope.
func (a algebra) inSupport(low, high float64, x *graph.Node) Value {
	defer a.b.Scope(a.name + " of an argument outside of the support")()
	return Node(a.b.Apply(op.Restrict{Low: low, High: high}, a.argument(x).node))
}

// count returns x as a Value that is NaN where x is not a whole number from 0 to high.
func (a algebra) count(high float64, x *graph.Node) Value {
	at := a.inSupport(0, high, x).node
	defer a.b.Scope(a.name + " of an argument that is not a count")()
	return Node(a.b.Apply(op.Whole{}, at))
}

func (a algebra) apply(o graph.Op, f func(x float64) float64, v Value) Value {
	if v.isNode {
		return Node(a.b.Apply(o, v.node))
	}
	return Number(f(v.number))
}

func (a algebra) log(v Value) Value { return a.apply(op.Log{}, math.Log, v) }

func (a algebra) log1p(v Value) Value { return a.apply(op.Log1p{}, math.Log1p, v) }

func (a algebra) abs(v Value) Value { return a.apply(op.Abs{}, math.Abs, v) }

func (a algebra) squared(v Value) Value {
	return a.apply(op.Squared{}, func(x float64) float64 { return x * x }, v)
}

func (a algebra) softplus(v Value) Value {
	return a.apply(op.Softplus{}, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, v)
}

// lgamma returns ln Gamma(v) of a positive v. It is NaN where a node is negative, although the
// gamma function has values there.
func (a algebra) lgamma(v Value) Value {
	if v.isNode {
		v = Node(a.b.Apply(op.Restrict{Low: 0, High: math.Inf(1)}, v.node))
	}
	return a.apply(op.Lgamma{}, func(x float64) float64 {
		y, _ := math.Lgamma(x)
		return y
	}, v)
}

// scaled returns factor v + offset.
func (a algebra) scaled(factor float64, v Value, offset float64) Value {
	switch {
	case !v.isNode:
		return Number(factor*v.number + offset)
	case factor == 1 && offset == 0:
		return v
	}
	return Node(a.b.Apply(op.Scale{Factor: factor, Offset: offset}, v.node))
}

func (a algebra) add(x, y Value) Value {
	switch {
	case !y.isNode:
		return a.scaled(1, x, y.number)
	case !x.isNode:
		return a.scaled(1, y, x.number)
	}
	return Node(a.b.Apply(op.Add{}, x.node, y.node))
}

func (a algebra) subtract(x, y Value) Value {
	switch {
	case !y.isNode:
		return a.scaled(1, x, -y.number)
	case !x.isNode:
		return a.scaled(-1, y, x.number)
	}
	return Node(a.b.Apply(op.Subtract{}, x.node, y.node))
}

// multiply returns x y. If one is the number 0, the product is the number 0.
func (a algebra) multiply(x, y Value) Value {
	if !x.isNode {
		x, y = y, x
	}
	switch {
	case !y.isNode && y.number == 0:
		return Number(0)
	case !y.isNode:
		return a.scaled(y.number, x, 0)
	}
	return Node(a.b.Apply(op.Multiply{}, x.node, y.node))
}

// divide returns the node x over y.
func (a algebra) divide(x, y Value) Value {
	if !y.isNode {
		return a.scaled(1/y.number, x, 0)
	}
	return Node(a.b.Apply(op.Divide{}, x.node, y.node))
}

// logAddExp returns ln(e^x + e^y).
func (a algebra) logAddExp(x, y Value) Value {
	if !x.isNode {
		x, y = y, x
	}
	if !x.isNode {
		return Number(max(x.number, y.number) + math.Log1p(math.Exp(-math.Abs(x.number-y.number))))
	}
	if !y.isNode {
		y = Node(a.broadcastOver(y, x))
	}
	return Node(a.b.Apply(op.LogAddExp{}, x.node, y.node))
}

// standardised returns (x - location) / scale of a node x.
func (a algebra) standardised(x, location, scale Value) Value {
	return a.divide(a.subtract(x, location), scale)
}

// broadcastOver returns v as a node of at least the shape of the node x; NaN where x is NaN or
// infinite.
func (a algebra) broadcastOver(v, x Value) *graph.Node {
	if v.isNode && graph.ShapeOf(v.node).Equal(graph.ShapeOf(x.node)) {
		return v.node
	}
	return a.add(v, Node(a.b.Apply(op.Subtract{}, x.node, x.node))).node
}

// noise returns a node of random numbers, new ones in each step.
func (a algebra) noise(kind op.NoiseKind, shape []int) Value {
	return Node(a.b.Apply(op.Noise{Kind: kind, Stream: a.b.Stream(), As: op.ViewAs(shape...)}, a.b.Header()))
}

// exponential returns a node of standard exponential random numbers. They are finite, because the
// uniform numbers are above 0.
func (a algebra) exponential(shape []int) Value {
	return a.scaled(-1, a.log(a.noise(op.UniformNoise, shape)), 0)
}
