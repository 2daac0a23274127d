package onnx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"

	"github.com/pollen-ml/pollen/tensor"
)

// Options select a part of a model, and the weights that are sampled.
type Options struct {
	// Output is the value that the network returns: an output of the model, or of any of its nodes.
	// The default is the first output of the model.
	Output string
	// Frozen reports whether the weight with a name is a constant rather than a parameter. It is
	// nil if all weights are parameters. The running statistics of batch normalisation are
	// constants in any case.
	Frozen func(name string) bool
	// Offset reports whether the weight with a name is the file's value plus a parameter that
	// starts at 0. A prior of the parameter is then one around the file's value. It is nil if there
	// is none.
	Offset func(name string) bool
}

// Network is a model from its input to one value, as a layer: x [B ...] -> y [B ...]. It may be
// applied to several builders at the same time.
type Network struct {
	model  *Model
	input  string
	output string
	frozen func(name string) bool
	offset func(name string) bool
	nodes  []*node // that the output depends on, in order
}

// Network selects the part of a model that an output depends on. It returns an error that lists
// every operator without a translation, with its nodes.
func (m *Model) Network(o Options) (*Network, error) {
	n, err := m.part(o)
	if err != nil {
		return nil, err
	}
	return n, n.checkOperators()
}

// part selects the nodes that an output depends on.
func (m *Model) part(o Options) (*Network, error) {
	if len(m.Inputs) != 1 {
		return nil, errors.Errorf("onnx: the model must have one input, got %d", len(m.Inputs))
	}
	n := &Network{model: m, input: m.Inputs[0].Name, output: o.Output, frozen: o.Frozen, offset: o.Offset}
	if n.output == "" {
		if len(m.Outputs) == 0 {
			return nil, errors.New("onnx: the model has no output")
		}
		n.output = m.Outputs[0].Name
	}
	makers := map[string]*node{}
	for _, node := range m.nodes {
		for _, name := range node.outputs {
			makers[name] = node
		}
	}
	needed := map[*node]bool{}
	for names := []string{n.output}; len(names) > 0; {
		name := names[len(names)-1]
		names = names[:len(names)-1]
		maker := makers[name]
		switch {
		case name == "" || name == n.input || m.tensors[name] != nil:
		case maker == nil:
			return nil, errors.Errorf("onnx: no node makes the value %q", name)
		case !needed[maker]:
			needed[maker] = true
			names = append(names, maker.inputs...)
		}
	}
	for _, node := range m.nodes {
		if needed[node] {
			n.nodes = append(n.nodes, node)
		}
	}
	return n, nil
}

// checkOperators returns an error that names each operator without a translation.
func (n *Network) checkOperators() error {
	missing := map[string][]string{}
	for _, node := range n.nodes {
		if !standardDomain(node.domain) {
			name := node.domain + "." + node.op
			missing[name] = append(missing[name], node.String())
		} else if translations[node.op] == nil {
			missing[node.op] = append(missing[node.op], node.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var parts []string
	for name, nodes := range missing {
		text := fmt.Sprintf("%s in node %s", name, nodes[0])
		if len(nodes) > 1 {
			text += fmt.Sprintf(" and %d more", len(nodes)-1)
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	return errors.Errorf("onnx: operators that are not supported: %s; cut the network before them by Options.Output, or export it with other operators",
		strings.Join(parts, "; "))
}

// Operators returns the names of the operators that have a translation, sorted.
func Operators() []string {
	var names []string
	for name := range translations {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Apply implements layers.Layer.
func (n *Network) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	if b.Err() != nil || x == nil {
		return nil
	}
	t, err := n.translate(b, x)
	if err != nil {
		b.Fail(errors.WithMessage(err, "onnx"))
		return nil
	}
	y, err := t.nodeOf(n.output)
	if err != nil {
		b.Fail(errors.WithMessage(err, "onnx"))
	}
	return y
}

// translate translates all nodes for a builder and an input.
func (n *Network) translate(b *graph.Builder, x *graph.Node) (*translator, error) {
	t := &translator{Network: n, b: b, values: map[string]value{n.input: {node: x}}}
	if declared, shape := n.model.Inputs[0].Shape, graph.ShapeOf(x); len(declared) > 0 && len(shape) > 0 {
		t.batch, t.fixedBatch = shape[0], max(0, declared[0])
	}
	if err := t.checkInput(graph.ShapeOf(x)); err != nil {
		return nil, err
	}
	for _, node := range n.nodes {
		if err := t.translateNode(node); err != nil {
			return nil, errors.WithMessagef(err, "node %s", node)
		}
	}
	return t, nil
}

// value is what a name of the model stands for: a node of the builder, or an array that is known
// now. A weight becomes a node when an op first needs it as one.
type value struct {
	node  *graph.Node
	array *ndarray
	// margin, if not nil, surrounds the images of node with zeros. A convolution takes it over as
	// its padding; before any other reader, padding is applied.
	margin *margin
	conv   *convolution // that made the node, into which a batch normalisation may be folded
}

// translator translates the nodes of a model for one builder.
type translator struct {
	*Network
	b      *graph.Builder
	values map[string]value
	// batch is the present batch size, fixedBatch the one that the model declares, or 0.
	batch, fixedBatch int
	constants         int // made so far, which are numbered
	*node                 // being translated
}

func (t *translator) checkInput(shape tensor.Shape) error {
	want := t.model.Inputs[0].Shape
	if want == nil {
		return nil
	}
	fits := len(want) == len(shape)
	for axis := 1; fits && axis < len(want); axis++ {
		fits = want[axis] < 0 || want[axis] == shape[axis]
	}
	if !fits {
		return errors.Errorf("input %s must have shape %s, got %v", t.input, shapeText(want), shape)
	}
	return nil
}

// shapeText returns a shape with B for the batch and ? for open extents.
func shapeText(shape []int) string {
	parts := make([]string, len(shape))
	for i, extent := range shape {
		switch {
		case i == 0:
			parts[i] = "B"
		case extent < 0:
			parts[i] = "?"
		default:
			parts[i] = fmt.Sprint(extent)
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// translateNode makes the outputs of a node.
func (t *translator) translateNode(n *node) error {
	defer t.b.Scope(n.name)()
	t.node = n
	for _, name := range n.inputs {
		if _, known := t.values[name]; !known && name != "" && t.model.tensors[name] == nil {
			return errors.Errorf("input %q is not made by an earlier node", name)
		}
	}
	made, err := translations[n.op](t)
	if err == nil {
		err = t.b.Err()
	}
	if err != nil {
		return err
	}
	for i, v := range made {
		if i < len(n.outputs) && n.outputs[i] != "" {
			t.values[n.outputs[i]] = v
		}
	}
	return nil
}

// has reports whether the node has input i.
func (t *translator) has(i int) bool { return i >= 0 && i < len(t.inputs) && t.inputs[i] != "" }

// needs returns an error unless the node has at least n inputs.
func (t *translator) needs(n int) error {
	for i := range n {
		if !t.has(i) {
			return errors.Errorf("must have at least %d inputs, got %d", n, len(t.inputs))
		}
	}
	return nil
}

// x returns input i as a node.
func (t *translator) x(i int) (*graph.Node, error) {
	if !t.has(i) {
		return nil, errors.Errorf("input %d is missing", i)
	}
	return t.nodeOf(t.inputs[i])
}

// xs returns the first n inputs as nodes, all of which the node must have.
func (t *translator) xs(n int) ([]*graph.Node, error) {
	if err := t.needs(n); err != nil {
		return nil, err
	}
	nodes := make([]*graph.Node, n)
	for i := range nodes {
		var err error
		if nodes[i], err = t.x(i); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// nodeOf returns the node of a value. A weight becomes a parameter or, if it is frozen, a constant.
func (t *translator) nodeOf(name string) (*graph.Node, error) {
	v, ok := t.values[name]
	if ok && v.node != nil {
		var err error
		if v.margin != nil {
			v, err = t.surrounded(v)
			t.values[name] = v
		}
		return v.node, cmp.Or(err, t.b.Err())
	}
	if ok {
		node, err := t.constant(v.array)
		t.values[name] = value{node: node, array: v.array}
		return node, err
	}
	w := t.model.tensors[name]
	if w == nil {
		return nil, errors.Errorf("no node makes the value %q", name)
	}
	if t.constantWeight(w) {
		node, err := t.constantOf(name, w.array())
		t.values[name] = value{node: node}
		return node, err
	}
	if t.offset != nil && t.offset(name) {
		start, err := t.constantOf(name+" (start)", w.array())
		if err != nil {
			return nil, err
		}
		t.values[name] = value{node: t.b.Apply(op.Add{}, start, t.b.Parameter(name, nil, w.Shape...))}
		return t.values[name].node, t.b.Err()
	}
	start := func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { w.values(values) }
	t.values[name] = value{node: t.b.Parameter(name, start, w.Shape...)}
	return t.values[name].node, t.b.Err()
}

// constantWeight reports whether a weight is a constant rather than a parameter: it is frozen, or a
// single number, or not of floats.
func (t *translator) constantWeight(w *storedTensor) bool {
	return !w.Type.Floating() || len(w.Shape) == 0 || t.frozen != nil && t.frozen(w.Name)
}

// known returns input i if its values are known now: if it is a weight, or was computed from shapes
// and constants.
func (t *translator) known(i int) (*ndarray, bool) {
	if !t.has(i) {
		return nil, false
	}
	name := t.inputs[i]
	if v, ok := t.values[name]; ok {
		if v.array == nil && v.node != nil && t.model.tensors[name] != nil {
			return t.model.tensors[name].array(), true
		}
		return v.array, v.array != nil
	}
	if w := t.model.tensors[name]; w != nil {
		return w.array(), true
	}
	return nil, false
}

// folded returns all inputs if they are known and none is a weight that is sampled, so that the
// node can be computed now.
func (t *translator) folded() ([]*ndarray, bool) {
	var inputs []*ndarray
	for i, name := range t.inputs {
		if w := t.model.tensors[name]; w != nil && !t.constantWeight(w) {
			return nil, false
		}
		a, ok := t.known(i)
		if !ok && name != "" {
			return nil, false
		}
		inputs = append(inputs, a)
	}
	return inputs, len(inputs) > 0
}

// integersOf returns the integers of an attribute or, since later opsets have it there, of input i.
// ok is false if the node has neither.
func (t *translator) integersOf(name string, i int) (integers []int, ok bool, err error) {
	if a := t.attributes[name]; a != nil {
		for _, v := range a.integers {
			integers = append(integers, int(max(-maxElements, min(maxElements, v))))
		}
		return integers, true, nil
	}
	if !t.has(i) {
		return nil, false, nil
	}
	a, known := t.known(i)
	if !known {
		return nil, false, errors.Errorf("input %d, the %s, must be a constant or follow from shapes: export the model with fixed sizes", i, name)
	}
	return a.integers(), true, nil
}

// number returns a scalar of an attribute or of input i, or otherwise a default.
func (t *translator) number(name string, i int, otherwise float64) (float64, error) {
	if a := t.attributes[name]; a != nil {
		return a.float, nil
	}
	if i < 0 || !t.has(i) {
		return otherwise, nil
	}
	a, known := t.known(i)
	if !known || len(a.values) != 1 {
		return 0, errors.Errorf("input %d, the %s, must be a constant number", i, name)
	}
	return a.values[0], nil
}

func (t *translator) integer(name string, otherwise int) int {
	if a := t.attributes[name]; a != nil {
		return int(max(-maxElements, min(maxElements, a.integer)))
	}
	return otherwise
}

func (t *translator) text(name, otherwise string) string {
	if a := t.attributes[name]; a != nil {
		return a.text
	}
	return otherwise
}

// axis returns an axis attribute as a number from 0; end allows the number of axes itself.
func (t *translator) axis(axis, axes int, end bool) (int, error) {
	at := axis
	if at < 0 {
		at += axes
	}
	if at < 0 || at > axes || at == axes && !end {
		return 0, errors.Errorf("axis must be one of %d, got %d", axes, axis)
	}
	return at, nil
}

// constant makes a node of an array.
func (t *translator) constant(a *ndarray) (*graph.Node, error) {
	t.constants++
	return t.constantOf(fmt.Sprintf("onnx.constant%d", t.constants), a)
}

func (t *translator) constantOf(name string, a *ndarray) (*graph.Node, error) {
	if len(a.values) == 0 {
		return nil, errors.Errorf("value %s must have at least one element, got shape %v", name, a.shape)
	}
	table := t.b.Table(name, a.values)
	return t.view(table, a.shape), t.b.Err()
}

// scalar makes a constant of one number, with enough axes of extent 1 to broadcast.
func (t *translator) scalar(v float64, axes int) (*graph.Node, error) {
	shape := make([]int, axes)
	for i := range shape {
		shape[i] = 1
	}
	return t.constant(&ndarray{shape, Float32, []float64{v}})
}

// view gives a node another shape with the same number of elements.
func (t *translator) view(x *graph.Node, shape []int) *graph.Node {
	if graph.ShapeOf(x).Equal(tensor.Shape(shape)) {
		return x
	}
	return t.b.Apply(op.ViewAs(shape...), x)
}
