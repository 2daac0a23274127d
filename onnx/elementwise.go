package onnx

import (
	"cmp"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// unary returns the translation of a function of one input, y = f(x). fold is f for values that are
// known while the graph is built.
func unary(fold func(x float64) float64, build func(t *translator, x *graph.Node) (*graph.Node, error)) translation {
	return func(t *translator) ([]value, error) {
		if inputs, ok := t.folded(); ok && fold != nil {
			y := &ndarray{inputs[0].shape, inputs[0].kind, make([]float64, len(inputs[0].values))}
			for i, v := range inputs[0].values {
				y.values[i] = fold(v)
			}
			return []value{{array: y}}, nil
		}
		x, err := t.x(0)
		if err != nil {
			return nil, err
		}
		y, err := build(t, x)
		return []value{{node: y}}, err
	}
}

// curve returns the translation of a function whose attributes build reads. It is not computed for
// known values: networks apply it to images only.
func curve(build func(t *translator, x *graph.Node) *graph.Node) translation {
	return unary(nil, func(t *translator, x *graph.Node) (*graph.Node, error) { return build(t, x), nil })
}

func (t *translator) relu(x *graph.Node) *graph.Node { return t.b.Apply(op.ReLU{}, x) }

// clipped returns x limited to [low, high], either of which may be infinite.
func (t *translator) clipped(x *graph.Node, low, high float64) *graph.Node {
	return t.b.Apply(op.Clip{Low: low, High: high}, x)
}

func clip(t *translator) ([]value, error) {
	low, err := t.number("min", 1, math.Inf(-1))
	if err != nil {
		return nil, err
	}
	high, err := t.number("max", 2, math.Inf(1))
	if err != nil {
		return nil, err
	}
	return unary(func(v float64) float64 { return min(max(v, low), high) }, func(t *translator, x *graph.Node) (*graph.Node, error) {
		if math.IsInf(low, -1) && math.IsInf(high, 1) {
			return x, nil
		}
		if low > high { // as the specification requires: every element becomes the maximum
			return t.clipped(x, high, high), nil
		}
		return t.clipped(x, low, high), nil
	})(t)
}

// leaky returns relu(x) - slope relu(-x), where slope is a node that broadcasts.
func (t *translator) leaky(x, slope *graph.Node) *graph.Node {
	negative := t.relu(t.b.Apply(op.Negate{}, x))
	return t.b.Apply(op.Subtract{}, t.relu(x), t.b.Apply(op.Multiply{}, negative, slope))
}

func leakyReLU(t *translator, x *graph.Node) *graph.Node {
	alpha := t.float("alpha", 0.01)
	if alpha == 0 {
		return t.relu(x)
	}
	negative := t.scaled(t.relu(t.b.Apply(op.Negate{}, x)), alpha, 0)
	return t.b.Apply(op.Subtract{}, t.relu(x), negative)
}

func prelu(t *translator) ([]value, error) {
	in, err := t.xs(2)
	if err != nil {
		return nil, err
	}
	x, slope := in[0], in[1]
	if shape := graph.ShapeOf(slope); t.opset < 7 && len(shape) == 1 && shape[0] > 1 {
		slope = t.perChannel(slope, len(graph.ShapeOf(x)))
	}
	return []value{{node: t.leaky(x, slope)}}, nil
}

func celu(t *translator, x *graph.Node) *graph.Node {
	alpha := t.float("alpha", 1)
	return t.scaled(t.b.Apply(op.ELU{Alpha: 1}, t.scaled(x, 1/alpha, 0)), alpha, 0)
}

// The constants of Klambauer et al., Self-normalizing neural networks (2017).
const (
	seluAlpha = 1.67326319217681884765625
	seluGamma = 1.05070102214813232421875
)

func selu(t *translator, x *graph.Node) *graph.Node {
	return t.scaled(t.b.Apply(op.ELU{Alpha: t.float("alpha", seluAlpha)}, x), t.float("gamma", seluGamma), 0)
}

func (t *translator) hardSigmoid(x *graph.Node, alpha, beta float64) *graph.Node {
	return t.clipped(t.scaled(x, alpha, beta), 0, 1)
}

func thresholdedReLU(t *translator, x *graph.Node) *graph.Node {
	threshold, err := t.scalar(t.float("alpha", 1), len(graph.ShapeOf(x)))
	if err != nil {
		t.b.Fail(err)
		return nil
	}
	return t.b.Apply(op.Multiply{}, x, t.b.Apply(op.Compare{Less: true}, threshold, x))
}

// signOf is -1, 0 or 1.
func signOf(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

func signs(t *translator, x *graph.Node) (*graph.Node, error) {
	zero, err := t.scalar(0, len(graph.ShapeOf(x)))
	if err != nil {
		return nil, err
	}
	above, below := t.b.Apply(op.Compare{Less: true}, zero, x), t.b.Apply(op.Compare{Less: true}, x, zero)
	return t.b.Apply(op.Subtract{}, above, below), nil
}

// shrink moves elements towards 0 by a bias, and those within lambd of 0 to it.
func shrink(t *translator, x *graph.Node) *graph.Node {
	bound, bias := t.float("lambd", 0.5), t.float("bias", 0)
	high, err := t.scalar(bound, len(graph.ShapeOf(x)))
	if err != nil {
		t.b.Fail(err)
		return nil
	}
	low, err := t.scalar(-bound, len(graph.ShapeOf(x)))
	if err != nil {
		t.b.Fail(err)
		return nil
	}
	above := t.b.Apply(op.Multiply{}, t.scaled(x, 1, -bias), t.b.Apply(op.Compare{Less: true}, high, x))
	below := t.b.Apply(op.Multiply{}, t.scaled(x, 1, bias), t.b.Apply(op.Compare{Less: true}, x, low))
	return t.b.Apply(op.Add{}, above, below)
}

// gelu is x Phi(x), with the normal distribution function or, if approximated, by tanh (Hendrycks
// and Gimpel, Gaussian error linear units, 2016).
func gelu(t *translator, x *graph.Node) *graph.Node {
	var phi *graph.Node
	switch approximate := t.text("approximate", "none"); approximate {
	case "none":
		return t.b.Apply(op.GELU{}, x)
	case "tanh":
		cube := t.b.Apply(op.Multiply{}, x, t.b.Apply(op.Squared{}, x))
		inner := t.b.Apply(op.Add{}, x, t.scaled(cube, 0.044715, 0))
		phi = t.b.Apply(op.Tanh{}, t.scaled(inner, math.Sqrt(2/math.Pi), 0))
	default:
		t.b.Fail(errors.Errorf("approximate must be none or tanh, got %q", approximate))
		return nil
	}
	return t.b.Apply(op.Multiply{}, t.scaled(x, 0.5, 0), t.scaled(phi, 1, 1))
}

// mul translates Mul. In the files of most exporters it is the last node of a SiLU, a hard swish or
// a GELU.
func mul(t *translator) ([]value, error) {
	if err := t.needs(2); err != nil {
		return nil, err
	}
	for _, spelled := range []struct {
		activation graph.Op
		of         func() (x string, ok bool)
	}{{op.SiLU{}, t.spelledSiLU}, {op.HardSwish{}, t.spelledHardSwish}, {op.GELU{}, t.spelledGELU}} {
		name, ok := spelled.of()
		if !ok {
			continue
		}
		x, err := t.nodeOf(name)
		if err != nil {
			return nil, err
		}
		if ok, err = t.hasAxesOf(x); ok {
			return []value{{node: t.b.Apply(spelled.activation, x)}}, t.b.Err()
		} else if err != nil {
			return nil, err
		}
	}
	return t.nary(func(x, y float64) float64 { return x * y }, apply2(op.Multiply{}))
}

// hasAxesOf reports whether no input has more axes than x, which the result would then have, too:
// constants may have shapes such as [1 1 1 1].
func (t *translator) hasAxesOf(x *graph.Node) (bool, error) {
	for i := range t.inputs {
		shape, err := t.anyShape(i)
		if err != nil || len(shape) > len(graph.ShapeOf(x)) {
			return false, err
		}
	}
	return true, nil
}

// spelledSiLU returns x if the node computes x sigmoid(x).
func (t *translator) spelledSiLU() (x string, ok bool) {
	if len(t.inputs) != 2 {
		return "", false
	}
	for i, x := range t.inputs {
		if n := t.makers[t.inputs[1-i]]; n != nil && n.op == "Sigmoid" && len(n.inputs) == 1 && n.inputs[0] == x {
			return x, true
		}
	}
	return "", false
}

// spelledHardSwish returns x if the node computes x hard_sigmoid(x).
func (t *translator) spelledHardSwish() (x string, ok bool) {
	if len(t.inputs) != 2 {
		return "", false
	}
	for i, x := range t.inputs {
		if t.spelledHardSigmoid(t.inputs[1-i]) == x {
			return x, true
		}
	}
	return "", false
}

// spelledHardSigmoid returns x if a value is min(max(x/6 + 1/2, 0), 1), or "". The value may be
// computed as min(max(x + 3, 0), 6)/6.
func (t *translator) spelledHardSigmoid(name string) (x string) {
	if n := t.makers[name]; n != nil && n.op == "HardSigmoid" && len(n.inputs) == 1 {
		if isFloat32(n.float("alpha", 0.2), 1.0/6) && n.float("beta", 0.5) == 0.5 {
			return n.inputs[0]
		}
		return ""
	}
	clipped := cmp.Or(t.madeWith(name, "Mul", 1.0/6), t.madeWith(name, "Div", 6))
	n := t.makers[clipped]
	if n == nil || n.op != "Clip" || !t.isBound(n, "min", 1, 0) || !t.isBound(n, "max", 2, 6) {
		return ""
	}
	return t.madeWith(n.inputs[0], "Add", 3)
}

// isBound reports whether a bound of a Clip, an attribute or, since opset 11, input i, is a number.
func (t *translator) isBound(n *node, name string, i int, number float64) bool {
	if len(n.inputs) > i {
		return t.isNumber(n.inputs[i], number)
	}
	return n.float(name, math.NaN()) == number
}

// spelledGELU returns x if the node computes x (1 + erf(x/sqrt 2))/2. The three factors may be
// multiplied in any order.
func (t *translator) spelledGELU() (x string, ok bool) {
	if len(t.inputs) != 2 {
		return "", false
	}
	factors := t.inputs
	for i, name := range t.inputs {
		if inner := t.makers[name]; inner != nil && inner.op == "Mul" && len(inner.inputs) == 2 {
			factors = append(slices.Clone(inner.inputs), t.inputs[1-i])
			break
		}
	}
	if len(factors) != 3 {
		return "", false
	}
	rest := slices.DeleteFunc(slices.Clone(factors), func(name string) bool { return t.isNumber(name, 0.5) })
	for i, name := range rest {
		shifted := t.madeWith(name, "Add", 1)
		erf := t.makers[shifted]
		if len(rest) != 2 || erf == nil || erf.op != "Erf" || len(erf.inputs) != 1 {
			continue
		}
		x = rest[1-i]
		if t.madeWith(erf.inputs[0], "Div", math.Sqrt2) == x || t.madeWith(erf.inputs[0], "Mul", math.Sqrt2/2) == x {
			return x, true
		}
	}
	return "", false
}

// madeWith returns the other operand of the node that made a value with the given operator and
// number, or "" if no such node did. A quotient has the number as its second operand.
func (t *translator) madeWith(name, operator string, number float64) (operand string) {
	n := t.makers[name]
	if n == nil || n.op != operator || len(n.inputs) != 2 {
		return ""
	}
	switch {
	case t.isNumber(n.inputs[1], number):
		return n.inputs[0]
	case operator != "Div" && t.isNumber(n.inputs[0], number):
		return n.inputs[1]
	}
	return ""
}

// isNumber reports whether a value is a constant that is, in float32, the given number.
func (t *translator) isNumber(name string, number float64) bool {
	v, _, ok := t.numberOf(name)
	return ok && isFloat32(v, number)
}

// isFloat32 reports whether v is, in float32, a number that is not negative.
func isFloat32(v, number float64) bool { return math.Abs(v-number) <= 0x1p-24*number }

// numberOf returns a value that is a known number, and not a sampled weight, and how many axes it
// has.
func (t *translator) numberOf(name string) (number float64, axes int, ok bool) {
	a := t.values[name].array
	if w := t.model.tensors[name]; a == nil && w != nil && t.constantWeight(w) && product(w.Shape) == 1 {
		a = w.array()
	}
	if a == nil || len(a.values) != 1 {
		return 0, 0, false
	}
	return a.values[0], len(a.shape), true
}

func swish(t *translator, x *graph.Node) *graph.Node {
	alpha := t.float("alpha", 1)
	if alpha == 1 {
		return t.b.Apply(op.SiLU{}, x)
	}
	return t.b.Apply(op.Multiply{}, x, t.b.Apply(op.Sigmoid{}, t.scaled(x, alpha, 0)))
}

func mish(t *translator, x *graph.Node) *graph.Node {
	return t.b.Apply(op.Multiply{}, x, t.b.Apply(op.Tanh{}, t.b.Apply(op.Softplus{}, x)))
}

func reciprocal(t *translator, x *graph.Node) (*graph.Node, error) {
	one, err := t.scalar(1, len(graph.ShapeOf(x)))
	if err != nil {
		return nil, err
	}
	return t.b.Apply(op.Divide{}, one, x), nil
}

// twoInputs returns the translation of a function of two inputs with broadcasting. fold is nil if
// known values are never its inputs.
func twoInputs(fold func(x, y float64) float64, build func(t *translator, a, b *graph.Node) *graph.Node) translation {
	return func(t *translator) ([]value, error) { return t.nary(fold, build) }
}

// nary combines any number of inputs, from first to last.
func (t *translator) nary(fold func(x, y float64) float64, build func(t *translator, a, b *graph.Node) *graph.Node) ([]value, error) {
	if err := t.needs(max(1, len(t.inputs))); err != nil {
		return nil, err
	}
	if inputs, ok := t.folded(); ok && fold != nil {
		y := inputs[0]
		for _, next := range inputs[1:] {
			var err error
			if y, err = broadcast(y, next, y.kind, fold); err != nil {
				return nil, err
			}
		}
		return []value{{array: y}}, nil
	}
	y, err := t.withNumber()
	if y != nil || err != nil {
		return []value{{node: y}}, err
	}
	y, err = t.x(0)
	for i := 1; err == nil && i < len(t.inputs); i++ {
		var next *graph.Node
		if next, err = t.x(i); err == nil {
			y = build(t, y, t.aligned(next, len(graph.ShapeOf(y))))
			err = t.b.Err()
		}
	}
	return []value{{node: y}}, err
}

// withNumber returns the result of an arithmetic operator if one of its two operands is a known
// number, with which the other is scaled or shifted; otherwise nil. The numbers of an op.Scale must
// be finite in float32, and its factor must not be 0.
func (t *translator) withNumber() (*graph.Node, error) {
	if len(t.inputs) != 2 {
		return nil, nil
	}
	for i, name := range t.inputs {
		number, axes, ok := t.numberOf(name)
		if !ok {
			continue
		}
		factor, offset, first := 1.0, 0.0, i == 0
		switch {
		case t.op == "Add":
			offset = number
		case t.op == "Sub" && first:
			factor, offset = -1, number
		case t.op == "Sub":
			offset = -number
		case t.op == "Mul":
			factor = number
		case t.op == "Div" && !first:
			factor = 1 / number
		default:
			return nil, nil
		}
		f, o := float32(factor), float32(offset)
		x, err := t.x(1 - i)
		if err != nil || axes > len(graph.ShapeOf(x)) || f == 0 || f-f != 0 || o-o != 0 {
			return nil, err
		}
		return t.scaled(x, factor, offset), t.b.Err()
	}
	return nil, nil
}

// added returns the sum of two nodes. A vector along the last axis, as the bias of a linear layer,
// is added to rows, so that it is fused into a product of matrices.
func added(t *translator, a, b *graph.Node) *graph.Node {
	if len(graph.ShapeOf(a)) == 1 {
		a, b = b, a
	}
	shape, vector := graph.ShapeOf(a), graph.ShapeOf(b)
	last := len(shape) - 1
	if len(vector) != 1 || last < 1 || vector[0] != shape[last] {
		return t.b.Apply(op.Add{}, a, b)
	}
	rows := t.view(a, []int{product(shape[:last]), shape[last]})
	return t.view(t.b.Apply(op.BiasAdd{}, rows, b), shape)
}

// aligned appends axes of extent 1 to x if the attribute axis of opset 6 is set: it is the axis of
// the other operand with which the first axis of x is aligned. The other operand has the given
// number of axes.
func (t *translator) aligned(x *graph.Node, axes int) *graph.Node {
	axis := t.attributes["axis"]
	shape := graph.ShapeOf(x)
	if t.opset >= 7 || axis == nil || len(shape) == 0 {
		return x
	}
	after := axes - int(axis.integer) - len(shape)
	if axis.integer < 0 || after < 0 || after > axes {
		return x // the shapes do not broadcast, which the op reports
	}
	return t.view(x, slices.Concat([]int(shape), slices.Repeat([]int{1}, after)))
}

func apply2(o graph.Op) func(t *translator, a, b *graph.Node) *graph.Node {
	return func(t *translator, a, b *graph.Node) *graph.Node { return t.b.Apply(o, a, b) }
}

// extremum broadcasts its operands, which array.Extremum does not.
func extremum(minimum bool) func(t *translator, a, b *graph.Node) *graph.Node {
	return func(t *translator, a, b *graph.Node) *graph.Node {
		shape, err := broadcastShape(graph.ShapeOf(a), graph.ShapeOf(b))
		if err == nil {
			a, err = t.expanded(a, shape)
		}
		if err == nil {
			b, err = t.expanded(b, shape)
		}
		if err != nil {
			t.b.Fail(err)
			return nil
		}
		return t.b.Apply(array.Extremum{Minimum: minimum}, a, b)
	}
}

func mean(t *translator) ([]value, error) {
	y, err := t.nary(nil, apply2(op.Add{}))
	if err != nil {
		return nil, err
	}
	return []value{{node: t.scaled(y[0].node, 1/float64(len(t.inputs)), 0)}}, nil
}

var errDivisionByZero = errors.New("division of an integer by zero")

// div translates Div: quotients of integers are truncated towards zero.
func div(t *translator) ([]value, error) {
	if err := t.needs(2); err != nil {
		return nil, err
	}
	fold := func(x, y float64) float64 { return x / y }
	if inputs, ok := t.folded(); ok && !inputs[0].kind.Floating() {
		if slices.Contains(inputs[len(inputs)-1].values, 0) {
			return nil, errDivisionByZero
		}
		fold = func(x, y float64) float64 { return math.Trunc(x / y) }
	}
	return t.nary(fold, apply2(op.Divide{}))
}

func compare(fold func(x, y float64) bool, build func(t *translator, a, b *graph.Node) *graph.Node) translation {
	return func(t *translator) ([]value, error) {
		if err := t.needs(2); err != nil {
			return nil, err
		}
		if inputs, ok := t.folded(); ok && len(inputs) == 2 {
			y, err := broadcast(inputs[0], inputs[1], Bool, func(x, y float64) float64 { return boolean(fold(x, y)) })
			return []value{{array: y}}, err
		}
		return t.nary(nil, build)
	}
}
