package stock

import (
	"math"

	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// elementwise translates operators on two inputs. It skips Gorgonia's repetitions of operands along
// axes of extent 1: Pollen's operators broadcast.
//
// Cheap forms come first: an operation with a constant becomes a Scale, x * (x >= 0) a ReLU, and
// the addition of a number for each channel a BiasAdd, which the product before it fuses. All
// others become an op with two inputs in memory.
func (t *translator) elementwise(m *nodeInfo) *graph.Node {
	r, err := m.binary()
	if err != nil {
		t.b.Fail(err)
		return nil
	}
	x, y := m.inputs[0], m.inputs[1]
	// A nil node without an error means that there is no cheap form.
	if v, ok := t.number(y); ok {
		if made := t.withConstant(r, x, v); made != nil || t.b.Err() != nil {
			return made
		}
	}
	if v, ok := t.number(x); ok {
		if made := t.ofConstant(r, v, y); made != nil || t.b.Err() != nil {
			return made
		}
	}
	if r == multiply {
		for _, pair := range [][2]*gorgonia.Node{{x, y}, {y, x}} {
			if t.isSign(pair[1], pair[0]) {
				return t.apply(op.ReLU{}, t.visit(pair[0]))
			}
		}
	}
	// After the ReLU, whose operands must be the same node.
	narrowX, narrowY := t.narrow(x), t.narrow(y)
	if r == add {
		for _, pair := range [][2]*gorgonia.Node{{narrowX, narrowY}, {narrowY, narrowX}} {
			if made := t.bias(m, pair[0], pair[1]); made != nil || t.b.Err() != nil {
				return made
			}
		}
	}
	o := operators[r]
	if o == nil {
		return nil
	}
	a, b := t.reshaped(m, narrowX), t.reshaped(m, narrowY)
	if t.b.Err() != nil {
		return nil
	}
	// Two operands that are repeated along the same axis do not give the result its extent there.
	shapes := []tensor.Shape{graph.ShapeOf(a), graph.ShapeOf(b)}
	if got, err := o.Shape(shapes); err == nil && got.Elements() != t.shape(m.Node).Elements() {
		a = t.visit(x)
	}
	// x > y is y < x.
	if r == greater || r == greaterOrEqual {
		a, b = b, a
	}
	made := t.apply(o, a, b)
	if r == notEqual {
		return t.apply(op.Scale{Factor: -1, Offset: 1}, made)
	}
	return made
}

// operators has the op of each operator. Those for greater are applied to exchanged operands.
// Comparisons yield 0 or 1 in the graph's float.
var operators = map[binaryOp]graph.Op{
	add:      op.Add{},
	subtract: op.Subtract{},
	multiply: op.Multiply{},
	divide:   op.Divide{},
	power:    op.Power{},

	less:           op.Compare{Less: true},
	greater:        op.Compare{Less: true},
	lessOrEqual:    op.Compare{Less: true, Equal: true},
	greaterOrEqual: op.Compare{Less: true, Equal: true},
	equal:          op.Compare{Equal: true},
	notEqual:       op.Compare{Equal: true}, // followed by 1 - y
}

// withConstant returns x r v as a cheap op, or nil if there is none. Special cases, such as a
// division by 0, are left to the general op.
func (t *translator) withConstant(r binaryOp, x *gorgonia.Node, v float64) *graph.Node {
	switch {
	case !isFinite(v):
	case r == add:
		return t.apply(op.Scale{Factor: 1, Offset: v}, t.visit(x))
	case r == subtract:
		return t.apply(op.Scale{Factor: 1, Offset: -v}, t.visit(x))
	case r == multiply && v != 0:
		return t.apply(op.Scale{Factor: v}, t.visit(x))
	case r == divide && v != 0 && isFinite(1/v):
		return t.apply(op.Scale{Factor: 1 / v}, t.visit(x))
	case r == power && v == 1:
		return t.visit(x)
	case r == power && v == 2:
		return t.apply(op.Squared{}, t.visit(x))
	}
	return nil
}

// ofConstant returns v r x as a cheap op, or nil if there is none. Division and power do not
// commute.
func (t *translator) ofConstant(r binaryOp, v float64, x *gorgonia.Node) *graph.Node {
	switch {
	case r == add || r == multiply:
		return t.withConstant(r, x, v)
	case r == subtract && isFinite(v):
		return t.apply(op.Scale{Factor: -1, Offset: v}, t.visit(x))
	}
	return nil
}

// isSign reports whether a node is x >= 0 as numbers 0 and 1 (retSame). gorgonia.Rectify
// multiplies x by such a node, and the two become one ReLU.
func (t *translator) isSign(n, x *gorgonia.Node) bool {
	m := t.info[n]
	if r, err := m.operator(); err != nil || r != greaterOrEqual || !m.bool("retSame") || m.inputs[0] != x {
		return false
	}
	zero, ok := t.number(m.inputs[1])
	return ok && zero == 0
}

// narrow returns the operand of a repetition, if it has extent 1 along the repeated axis.
// Repetitions along several axes are nested, hence the loop.
func (t *translator) narrow(n *gorgonia.Node) *gorgonia.Node {
	for t.info[n].is("repeatOp") {
		m := t.info[n]
		from, along := tensor.Shape(m.inputs[0].Shape()), m.int("along")
		if len(from) > 0 && (len(from) != n.Dims() || from[along] != 1) {
			break
		}
		n = m.inputs[0]
	}
	return n
}

// reshaped returns an operand in the shape of the result, if it has the same number of elements:
// Gorgonia accepts a vector where a column or a row of its length is needed. Other shapes
// broadcast.
func (t *translator) reshaped(m *nodeInfo, operand *gorgonia.Node) *graph.Node {
	x, shape := t.visit(operand), t.shape(m.Node)
	if x == nil || graph.ShapeOf(x).Elements() != shape.Elements() {
		return x
	}
	return t.view(x, shape)
}

// bias returns x + y as a BiasAdd if y has one number for each channel of x, axis 1: the product or
// convolution before it fuses a BiasAdd. It returns nil for any other y. The product [B K] or the
// convolution [B K P Q] is x, and y is [1 K] or [1 K 1 1].
func (t *translator) bias(m *nodeInfo, x, y *gorgonia.Node) *graph.Node {
	from, of := tensor.Shape(y.Shape()), tensor.Shape(x.Shape())
	if !of.Equal(tensor.Shape(m.Shape())) || len(of) < 2 || len(from) != len(of) || from[1] != of[1] ||
		from.Elements() != from[1] || t.hasBatchAxis(y) || of[1] == 1 {
		return nil
	}
	z := t.visit(x)
	return t.apply(op.BiasAdd{}, z, t.view(t.visit(y), tensor.Shape{from[1]}))
}

// minBetween translates the elementwise minimum; where both are equal the gradient goes to the
// first.
func (t *translator) minBetween(m *nodeInfo) *graph.Node { return t.extremum(m, false) }

// maxBetween translates the elementwise maximum; where both are equal the gradient goes to the
// first.
func (t *translator) maxBetween(m *nodeInfo) *graph.Node { return t.extremum(m, true) }

// extremum translates both for inputs of equal shape in the stock graph. In a network, the batch of
// one input may be larger than the graph's batch of 1: the other input is then repeated.
func (t *translator) extremum(m *nodeInfo, larger bool) *graph.Node {
	a, b := t.reshaped(m, m.inputs[0]), t.reshaped(m, m.inputs[1])
	return t.apply(array.Extremum{Minimum: !larger}, t.broadcastBatch(a, b), t.broadcastBatch(b, a))
}

// broadcastBatch repeats a node of extent 1 along axis 0 to the extent of another node.
func (t *translator) broadcastBatch(x, like *graph.Node) *graph.Node {
	from, to := graph.ShapeOf(x), graph.ShapeOf(like)
	if len(from) == 0 || len(to) == 0 || from[0] != 1 || to[0] == 1 {
		return x
	}
	return t.apply(array.Repeat{Times: to[0]}, x)
}

// unary translates functions of one input. Those without an op of their own are composed of others,
// with gradients that follow.
func (t *translator) unary(m *nodeInfo) *graph.Node {
	x := t.visit(m.inputs[0])
	if t.b.Err() != nil {
		return nil
	}
	switch name := m.Op().String(); name {
	case "sign": // Gorgonia's sign of 0 is 1
		positive := t.apply(op.Compare{Less: true, Equal: true}, t.literal(nil, 0), x)
		return t.apply(op.Scale{Factor: 2, Offset: -1}, positive)
	case "log2":
		return t.apply(op.Scale{Factor: 1 / math.Ln2}, t.apply(op.Log{}, x))
	case "cube":
		return t.apply(op.Multiply{}, x, t.apply(op.Squared{}, x))
	case "inv":
		return t.apply(op.Divide{}, t.literal(nil, 1), x)
	case "invSqrt":
		return t.apply(op.Divide{}, t.literal(nil, 1), t.apply(op.Sqrt{}, x))
	case "expm1": // tanh(x/2) (e^x + 1), which is exact near 0
		half := t.apply(op.Tanh{}, t.apply(op.Scale{Factor: 0.5}, x))
		return t.apply(op.Multiply{}, half, t.apply(op.Scale{Factor: 1, Offset: 1}, t.apply(op.Exp{}, x)))
	default:
		if functions[name] == nil {
			return t.refuse(m, "the function has no translation", "write it with those of docs/gorgonia.md")
		}
		return t.apply(functions[name], x)
	}
}

// functions has the ops of Gorgonia's functions of one input, by Gorgonia's names. The only
// attribute of an elemUnaryOp is its function, whose name is the op's text.
var functions = map[string]graph.Op{
	"abs":      op.Abs{},
	"exp":      op.Exp{},
	"ln":       op.Log{},
	"log1p":    op.Log1p{},
	"neg":      op.Negate{},
	"sigmoid":  op.Sigmoid{},
	"softplus": op.Softplus{},
	"sqrt":     op.Sqrt{},
	"square":   op.Squared{},
	"tanh":     op.Tanh{},
}
