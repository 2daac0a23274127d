package stock

import (
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// translator translates the nodes of a stock graph into nodes of a builder. Adopt, Machine and
// Network differ in what becomes of inputs (input), of values that Gorgonia computes outside the
// graph (runtimeInput), and in the batch size.
type translator struct {
	*survey
	b     *graph.Builder
	dtype dense.Dtype // of the stock graph

	// input translates a node without an op. runtimeInput makes an input that is not a node of the
	// stock graph, and whose values are computed again for each run.
	input        func(n *gorgonia.Node) *graph.Node
	runtimeInput func(name string, shape tensor.Shape, values func() []float64) *graph.Node
	// evaluating makes dropout the identity.
	evaluating bool
	// gradients refuses the nodes of Gorgonia's gradients, except those that nodes has already.
	gradients bool
	// In a Network, batch is the present batch size, and graphBatch the stock graph's. Both
	// are 0 if the graph is run as it is.
	graphBatch, batch int

	nodes   map[*gorgonia.Node]*graph.Node // translated so far
	batched map[*gorgonia.Node]bool        // axis 0 is the batch, times an equal number of parts of each example
}

func newTranslator(s *survey, b *graph.Builder, dtype dense.Dtype) *translator {
	return &translator{
		survey: s, b: b, dtype: dtype,
		nodes: map[*gorgonia.Node]*graph.Node{}, batched: map[*gorgonia.Node]bool{},
	}
}

// translations has the translation of each op, by the name of Gorgonia's type. Its entries are in
// translations.go.
var translations map[string]func(t *translator, m *nodeInfo) *graph.Node

// refuse fails the builder with a Refused, and returns nil, so that translations can return its
// result.
func (t *translator) refuse(m *nodeInfo, reason, remedy string) *graph.Node {
	t.b.Fail(refusal(m.Node, reason, remedy))
	return nil
}

// visit returns the builder's node for one of the graph, which it translates, after its inputs, at
// the first call. A translation that returns nil without an error has no rule for the node; one may
// return another shape with the same elements, such as a matrix for a vector, which visit corrects.
func (t *translator) visit(n *gorgonia.Node) *graph.Node {
	if done, ok := t.nodes[n]; ok || t.b.Err() != nil {
		return done
	}
	m := t.info[n]
	if m == nil {
		t.b.Fail(refusal(n, "it is a node of another graph", "give nodes of one graph"))
		return nil
	}
	if t.gradients && t.gradient[n] && !t.update[n] {
		return t.refuse(m, "it is a node of Gorgonia's gradients, which Pollen does not use, and not the gradient by one input", "use what Grad returned for inputs")
	}
	if !t.checkType(m) {
		return nil
	}
	made := t.make(m)
	if t.b.Err() != nil {
		return nil
	}
	if made == nil {
		return t.refuse(m, "the op has no translation", "write it with the ops of docs/gorgonia.md")
	}
	if want := t.shape(n); !graph.ShapeOf(made).Equal(want) {
		if graph.ShapeOf(made).Elements() != want.Elements() {
			t.b.Fail(errors.Errorf("stock: %s: shape %v became %v", labelOf(n), want, graph.ShapeOf(made)))
			return nil
		}
		made = t.view(made, want)
	}
	t.nodes[n] = made
	return made
}

// make is visit without its checks. The scope is the node's label, so that errors of the builder
// name the node of the stock graph.
func (t *translator) make(m *nodeInfo) *graph.Node {
	if m.isInput() {
		return t.input(m.Node)
	}
	t.batched[m.Node] = t.hasBatchAxis(m.Node)
	defer t.b.Scope(labelOf(m.Node))()
	if m.written != nil {
		product := t.info[m.written]
		return t.apply(op.Log{}, t.visit(product.Node))
	}
	if translate := translations[m.kind]; translate != nil {
		return translate(t, m)
	}
	return t.refuseUnknown(m)
}

// hasBatchAxis reports whether axis 0 of a node is the batch, also for nodes that are not
// translated yet: it is if axis 0 of an input is, since ops that move or reduce the axis are
// refused. Outside a network it is always false.
func (t *translator) hasBatchAxis(n *gorgonia.Node) bool {
	if spreads, known := t.batched[n]; known || t.batch == 0 {
		return spreads
	}
	spreads := false
	for _, input := range t.info[n].inputs {
		spreads = spreads || t.hasBatchAxis(input)
	}
	t.batched[n] = spreads && !t.info[n].is("sizeOp")
	return t.batched[n]
}

// refuseUnknown refuses an op that has no translation, with the reason and the remedy for those
// that programs are likely to have.
func (t *translator) refuseUnknown(m *nodeInfo) *graph.Node {
	switch m.kind {
	case "avgPoolOp":
		return t.refuse(m, "Gorgonia's average pooling divides by the image's width and not by the window's size",
			"use GlobalAveragePool2D, or Pollen's own network with layers.AveragePool")
	case "randomOp":
		return t.refuse(m, "a random node has Gorgonia's random numbers", "Let an input have them, or use Dropout")
	case "im2colOp":
		return t.refuse(m, "Im2Col without a convolution has no translation", "use Conv2d")
	case "letOp":
		return t.refuse(m, "Set makes an assignment of the graph", "call the machine's Set after RunAll")
	case "":
		return t.refuse(m, fmt.Sprintf("%T is not an op that is known here", m.Op()), "write it with the ops of docs/gorgonia.md")
	}
	return t.refuse(m, "the op has no translation", "write it with the ops of docs/gorgonia.md")
}

// checkType refuses a node whose type is not the graph's: a translation has no conversions.
// Comparisons may be bool, since Pollen's are numbers, 0 and 1, of the graph's type.
func (t *translator) checkType(m *nodeInfo) bool {
	got := m.Dtype()
	if got == t.dtype {
		return true
	}
	if r, err := m.operator(); got == dense.Bool && err == nil && r.compares() {
		return true
	}
	t.refuse(m, fmt.Sprintf("its numbers are %v in a graph of %v", got, t.dtype), "make all nodes float32, or all float64")
	return false
}

// typeOf returns the type in which a node is computed. For a comparison, which is bool, it is the
// operands' type.
func (s *survey) typeOf(n *gorgonia.Node) dense.Dtype {
	if inputs := s.info[n].inputs; n.Dtype() == dense.Bool && len(inputs) > 0 {
		return s.typeOf(inputs[0])
	}
	return n.Dtype()
}

// gorgoniaType returns Gorgonia's name for one of the two floats.
func gorgoniaType(dtype tensor.DType) dense.Dtype {
	if dtype == tensor.Float32 {
		return dense.Float32
	}
	return dense.Float64
}

// shape returns a node's shape for the present batch size. If a graph for a batch of 8 has a node
// [16 5], two rows for each example, it is [64 5] for a batch of 32.
func (t *translator) shape(n *gorgonia.Node) tensor.Shape {
	shape := tensor.Shape(n.Shape())
	if t.batch > 0 && t.batched[n] && len(shape) > 0 {
		shape[0] = shape[0] / t.graphBatch * t.batch
	}
	return shape
}

// refuseMixing refuses, in a network, an op that makes one example's output depend on others. It
// returns true if it refuses; a graph that is run as it is may mix examples.
func (t *translator) refuseMixing(m *nodeInfo, how string) bool {
	if t.batch == 0 {
		return false
	}
	t.refuse(m, how+": an example's output would depend on the others of its batch", "adopt the network up to its logits, with an axis 0 of examples")
	return true
}

// apply is the builder's Apply.
func (t *translator) apply(o graph.Op, inputs ...*graph.Node) *graph.Node {
	return t.b.Apply(o, inputs...)
}

// view gives a node another shape with the same number of elements, without moving them. A nil
// node, the result of an error, stays nil.
func (t *translator) view(x *graph.Node, shape tensor.Shape) *graph.Node {
	if x == nil || graph.ShapeOf(x).Equal(shape) {
		return x
	}
	return t.apply(op.ViewAs(shape...), x)
}

// literal returns a constant, as a table of the program. The builder numbers the tables, since it
// may have other stock graphs.
func (t *translator) literal(shape tensor.Shape, values ...float64) *graph.Node {
	return t.view(t.b.Table(fmt.Sprintf("constant.%d", t.b.Number("constant")), values), shape)
}

// constant translates constants, and numbers that are known from shapes. Their values become a part
// of the program, and later changes of the node's value have no effect.
func (t *translator) constant(m *nodeInfo) *graph.Node {
	if v, ok := t.number(m.Node); ok {
		return t.literal(nil, v)
	}
	if !m.is("constantTensor") {
		return t.refuse(m, "it is the size of a batch, which differs from run to run", "divide by a constant")
	}
	values := floatsOf(m.Value())
	if values == nil {
		return t.refuse(m, "its values are not floats", "make it float32 or float64")
	}
	// Gorgonia compares constants by their text, which leaves elements out of large ones.
	if text := fmt.Sprint(m.Value()); t.userCount(m) > 1 && (strings.Contains(text, "...") || strings.Contains(text, "\n.\n")) {
		return t.refuse(m, "it is used twice, and may be two large constants that begin and end alike, which Gorgonia takes for one",
			"make it an input, such as NewMatrix with WithName and WithValue")
	}
	return t.literal(tensor.Shape(m.Shape()), values...)
}

// number returns the value of a constant scalar, of a size, or of an expression of only these,
// such as 1/(H*W). It returns false for the batch size, which differs from run to run in a
// network.
func (t *translator) number(n *gorgonia.Node) (float64, bool) {
	m := t.info[n]
	switch {
	case m == nil:
	case m.is("constantScalar"):
		return floatsOf(m.Value())[0], true
	case m.is("sizeOp"):
		return float64(m.int("val")), m.int("axis") > 0 || !t.hasBatchAxis(m.inputs[0])
	case m.is("elemUnaryOp"):
		if v, ok := t.number(m.inputs[0]); ok && m.Op().String() == "neg" {
			return -v, true
		}
	case m.is("elemBinOp"):
		r, err := m.binary()
		a, constA := t.number(m.inputs[0])
		b, constB := t.number(m.inputs[1])
		if err != nil || !constA || !constB {
			return 0, false
		}
		switch r {
		case add:
			return a + b, true
		case subtract:
			return a - b, true
		case multiply:
			return a * b, true
		case divide:
			return a / b, true
		}
	}
	return 0, false
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
