package onnx

import (
	"cmp"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Exporters write an If where what a program does depends on a shape, as in PyTorch's squeeze(1).
// Once the shape of the input is known, so is the condition, and the nodes of the branch that it
// selects replace the node.

// resolved returns the part without Ifs, for inputs of a shape. Which branches are taken must not
// depend on the number of examples, since each image has the same result in any batch.
func (p *part) resolved(dtype tensor.DType, shape tensor.Shape) (*part, error) {
	if !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.branches != nil }) {
		return p, nil
	}
	batches := []int{1, 2}
	if declared := p.model.Inputs[0].Shape; len(declared) > 0 && declared[0] > 0 {
		batches = []int{declared[0]}
	}
	var before *selection
	for _, batch := range batches {
		at := slices.Clone(shape)
		if len(at) > 0 {
			at[0] = batch
		}
		scratch := graph.New(dtype)
		s := &selection{before: before, translator: &translator{part: p, b: scratch, batch: batch, shapesOnly: true,
			values: map[string]value{p.input: {node: scratch.Data(p.input, dtype, at...)}}}}
		if err := s.add(p.nodes); err != nil {
			return nil, err
		}
		before = s
	}
	q := *p
	return &q, q.choose(before.nodes)
}

// selection finds which branches are taken, by translating a model without the values of weights.
type selection struct {
	*translator
	nodes  []*node // including the nodes of branches that were taken, and without Ifs
	taken  []*branch
	before *selection // for another size of the batch
}

// add translates nodes and adds them.
func (s *selection) add(nodes []*node) error {
	for _, n := range nodes {
		if n.branches == nil {
			if err := s.translateNode(n); err != nil {
				return errors.WithMessagef(err, "node %s", n)
			}
			s.nodes = append(s.nodes, n)
			continue
		}
		taken, err := s.branchOf(n)
		if i := len(s.taken); err == nil && s.before != nil && s.before.taken[i] != taken {
			err = errors.Errorf("the branch that is taken must not depend on the size of the batch: %s", exportDynamic)
		}
		if err != nil {
			return errors.WithMessagef(err, "node %s", n)
		}
		s.taken = append(s.taken, taken)
		inner := needed(taken.nodes, n.outputs)
		if err := checkOperators(inner); err != nil {
			return err
		}
		if err := s.add(inner); err != nil {
			return err
		}
	}
	return nil
}

// branchOf returns the branch that an If takes.
func (t *translator) branchOf(n *node) (*branch, error) {
	t.node = n
	if err := cmp.Or(t.needs(1), t.inputsAreMade()); err != nil {
		return nil, err
	}
	condition, ok := t.known(0)
	if !ok {
		return nil, errors.Errorf("the condition %s depends on the values of the input, not only on its shape: "+
			"export the model by tracing, which records the branch that an example takes, or cut the network before the node by Options.Output", n.inputs[0])
	}
	if len(condition.values) != 1 {
		return nil, errors.Errorf("the condition must be a single value, got shape %v", condition.shape)
	}
	if condition.values[0] != 0 {
		return &n.branches.then, nil
	}
	return &n.branches.otherwise, nil
}
