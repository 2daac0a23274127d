package onnx

import (
	"cmp"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// has reports whether the node has input i.
func (t *translator) has(i int) bool { return i >= 0 && i < len(t.inputs) && t.inputs[i] != "" }

// needs returns an error unless the node has at least n inputs.
func (t *translator) needs(n int) error {
	for i := range n {
		if !t.has(i) {
			return errors.Errorf("must have at least %d inputs, got %d", n, i)
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

// surrounded adds v's margin of zeros to its images.
func (t *translator) surrounded(v value) (value, error) {
	y := value{node: v.node}
	for i := range 2 {
		if v.margin.before[i]+v.margin.after[i] == 0 {
			continue
		}
		var err error
		if y, err = t.filled(y, 2+i, v.margin.before[i], v.margin.after[i], 0); err != nil {
			return value{}, err
		}
	}
	return y, nil
}

// constantWeight reports whether a weight is a constant rather than a parameter: it is frozen, or a
// single number, or not of floats.
func (t *translator) constantWeight(w *storedTensor) bool {
	return !w.Type.Floating() || len(w.Shape) == 0 || t.frozen != nil && t.frozen(w.Name)
}

// operand returns input i as it is: an array if its values are known and it is not a sampled
// weight, otherwise a node.
func (t *translator) operand(i int) (value, error) {
	if !t.has(i) {
		return value{}, errors.Errorf("input %d is missing", i)
	}
	return t.weightOrNode(t.inputs[i])
}

// weightOrNode returns a value as an array if it is known and not a sampled weight, otherwise as a
// node.
func (t *translator) weightOrNode(name string) (value, error) {
	v, ok := t.values[name]
	if ok && v.array != nil {
		return value{array: v.array}, nil
	}
	if w := t.model.tensors[name]; w != nil && t.constantWeight(w) {
		return value{array: w.array()}, nil
	}
	node, err := t.nodeOf(name)
	return value{node: node}, err
}

// known returns input i if its values are known now: if it is a weight, or was computed from shapes
// and constants.
func (t *translator) known(i int) (*ndarray, bool) {
	if !t.has(i) {
		return nil, false
	}
	name := t.unaliased(t.inputs[i])
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

// unaliased returns the value of which an Identity, or a chain of them, made the value called name.
// Exporters share equal weights in this way.
func (t *translator) unaliased(name string) string {
	for range t.nodes {
		maker := t.makers[name]
		if maker == nil || maker.op != "Identity" || len(maker.inputs) == 0 {
			break
		}
		name = maker.inputs[0]
	}
	return name
}

// folded returns all inputs if they are known and none is a weight that is sampled, so that the
// node can be computed now. Inputs after the first that are left out are nil.
func (t *translator) folded() ([]*ndarray, bool) {
	var inputs []*ndarray
	for i, name := range t.inputs {
		if w := t.model.tensors[name]; w != nil && !t.constantWeight(w) {
			return nil, false
		}
		a, ok := t.known(i)
		if !ok && (name != "" || i == 0) {
			return nil, false
		}
		inputs = append(inputs, a)
	}
	return inputs, len(inputs) > 0
}

// anyShape returns the shape of input i without making a node of it.
func (t *translator) anyShape(i int) ([]int, error) {
	if !t.has(i) {
		return nil, errors.Errorf("input %d is missing", i)
	}
	if v, ok := t.values[t.inputs[i]]; ok {
		return v.shape(), nil
	}
	return t.model.tensors[t.inputs[i]].Shape, nil
}

// integersOf returns the integers of an attribute or, as in later opsets, of input i. ok is false
// if the node has neither.
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

// extents returns the integers of input i, which the node must have.
func (t *translator) extents(name string, i int) ([]int, error) {
	integers, ok, err := t.integersOf(name, i)
	if err == nil && !ok {
		err = errors.Errorf("input %d, the %s, is missing", i, name)
	}
	return integers, err
}

// number returns a scalar from an attribute or from input i, or its argument otherwise if the node
// has neither.
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

func (n *node) float(name string, otherwise float64) float64 {
	if a := n.attributes[name]; a != nil {
		return a.float
	}
	return otherwise
}

func (n *node) integer(name string, otherwise int) int {
	if a := n.attributes[name]; a != nil {
		return int(max(-maxElements, min(maxElements, a.integer)))
	}
	return otherwise
}

func (n *node) text(name, otherwise string) string {
	if a := n.attributes[name]; a != nil {
		return a.text
	}
	return otherwise
}

// axis returns an axis, which may count from the end, as an index. If end is set, the index may
// equal axes.
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
