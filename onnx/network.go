package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Network is a model from its input to one value, as a layer: x [B ...] -> y [B ...]. It may be
// applied to several builders at the same time.
type Network struct {
	*part
}

// Network selects the part of a model that an output depends on. It returns an error that lists
// every operator without a translation, with its nodes.
func (m *Model) Network(o Options) (*Network, error) {
	p, err := m.part(o)
	if err != nil {
		return nil, err
	}
	return &Network{p}, errors.WithMessage(checkOperators(p.nodes), "onnx")
}

// checkOperators returns an error that names each operator without a translation. Branches are left
// out: which of them are taken depends on the input's shape.
func checkOperators(nodes []*node) error {
	missing := map[string][]string{}
	for _, node := range nodes {
		if node.branches != nil {
			continue
		}
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
		if name == "Loop" || name == "Scan" {
			text += " (a loop: export the model with its steps written out, as tracing does and, in Keras, unroll=True)"
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	return errors.Errorf("operators that are not supported: %s; cut the network before them by Options.Output, or export it with other operators",
		strings.Join(parts, "; "))
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
	if err == nil {
		err = t.checkOutput(y)
	}
	if err != nil {
		b.Fail(errors.WithMessage(err, "onnx"))
	}
	return y
}

// translate translates all nodes for a builder and an input.
func (n *Network) translate(b *graph.Builder, x *graph.Node) (*translator, error) {
	if err := n.checkInput(graph.ShapeOf(x)); err != nil {
		return nil, err
	}
	p, err := n.resolved(b.DType(), graph.ShapeOf(x))
	if err != nil {
		return nil, err
	}
	t := &translator{part: p, b: b, values: map[string]value{n.input: {node: x}}}
	if declared, shape := n.model.Inputs[0].Shape, graph.ShapeOf(x); len(declared) > 0 && len(shape) > 0 {
		t.batch, t.fixedBatch = shape[0], max(0, declared[0])
	}
	if t.fixedBatch > 0 && t.fixedBatch != t.batch {
		if err := t.declare(graph.ShapeOf(x)); err != nil {
			return nil, err
		}
	}
	err = t.translateAll()
	if err != nil && t.declared != nil && !strings.Contains(err.Error(), exportDynamic) {
		err = errors.Errorf("%v: for its declared batch of %d the model has no such error: %s", err, t.fixedBatch, exportDynamic)
	}
	return t, err
}

// declare finds the shapes of all values at the batch size that the model declares, by translating
// it without the values of weights.
func (t *translator) declare(shape tensor.Shape) error {
	declared := slices.Clone(shape)
	declared[0] = t.fixedBatch
	scratch := graph.New(t.b.DType())
	at := &translator{part: t.part, b: scratch, batch: t.fixedBatch, fixedBatch: t.fixedBatch, shapesOnly: true,
		values: map[string]value{t.input: {node: scratch.Data(t.input, t.b.DType(), declared...)}}}
	if err := at.translateAll(); err != nil {
		return err
	}
	t.declared, t.minor, t.units = map[string][]int{}, map[string]int{}, map[string]int{}
	for name, v := range at.values {
		if v.array != nil || v.node != nil {
			t.declared[name] = v.shape()
		}
	}
	return nil
}

func (t *translator) translateAll() error {
	for _, node := range t.nodes {
		if err := t.translateNode(node); err != nil {
			return errors.WithMessagef(err, "node %s", node)
		}
	}
	return nil
}

// checkOutput returns an error if the model declares a batch size and the first axis of the output
// is not the batch.
func (t *translator) checkOutput(y *graph.Node) error {
	shape, declared := graph.ShapeOf(y), t.declared[t.output]
	if declared == nil || len(declared) > 0 && len(shape) > 0 && declared[0] == t.fixedBatch && shape[0] == t.batch {
		return nil
	}
	return t.rebatchedError(t.output, declared, shape)
}

func (p *part) checkInput(shape tensor.Shape) error {
	want := p.model.Inputs[0].Shape
	if want == nil {
		return nil
	}
	fits := len(want) == len(shape)
	for axis := 1; fits && axis < len(want); axis++ {
		fits = want[axis] < 0 || want[axis] == shape[axis]
	}
	if !fits {
		return errors.Errorf("input %s must have shape %s, got %v", p.input, shapeText(want), shape)
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
	if err := t.inputsAreMade(); err != nil {
		return err
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
			t.inherit(n.outputs[i])
		}
	}
	return t.checkBatch()
}

// inputsAreMade returns an error unless the node's inputs have been made.
func (t *translator) inputsAreMade() error {
	for _, name := range t.inputs {
		if _, known := t.values[name]; !known && name != "" && t.model.tensors[name] == nil {
			return errors.Errorf("input %q is not made by an earlier node", name)
		}
	}
	return nil
}
