package onnx

import (
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// translator translates the nodes of a model for one builder.
type translator struct {
	*part
	b      *graph.Builder
	values map[string]value
	// batch is the present batch size, fixedBatch the one that the model declares, or 0.
	batch, fixedBatch int
	// declared has the shapes of values for a batch of fixedBatch, if that is not batch. minor has,
	// for values with an axis that other axes and the batch were merged into, in this order, the
	// number of elements of these axes. units has how many axes of extent 1 before the batch a
	// Reshape removed. shapesOnly is set while declared is found: constants have no values.
	declared     map[string][]int
	minor, units map[string]int
	shapesOnly   bool
	constants    int // made so far, which are numbered
	*node            // being translated
}

// translation makes the outputs of the node that is being translated.
type translation func(t *translator) ([]value, error)

// constant makes a node of an array.
func (t *translator) constant(a *ndarray) (*graph.Node, error) {
	t.constants++
	return t.constantOf(fmt.Sprintf("onnx.constant%d", t.constants), a)
}

func (t *translator) constantOf(name string, a *ndarray) (*graph.Node, error) {
	if len(a.values) == 0 {
		return nil, errors.Errorf("value %s must have at least one element, got shape %v", name, a.shape)
	}
	if t.shapesOnly {
		return t.b.Data(name, t.b.DType(), a.shape...), t.b.Err()
	}
	table := t.b.Table(name, a.values)
	return t.view(table, a.shape), t.b.Err()
}

// asNode returns the node of a value.
func (t *translator) asNode(v value) (*graph.Node, error) {
	if v.array != nil {
		return t.constant(v.array)
	}
	return v.node, t.b.Err()
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

func (t *translator) scaled(x *graph.Node, factor, offset float64) *graph.Node {
	if factor == 1 && offset == 0 {
		return x
	}
	return t.b.Apply(op.Scale{Factor: factor, Offset: offset}, x)
}

// perChannel gives [C] the shape [1 C 1 ...] with the given number of axes.
func (t *translator) perChannel(v *graph.Node, axes int) *graph.Node {
	shape := slices.Repeat([]int{1}, max(2, axes))
	shape[1] = graph.ShapeOf(v).Elements()
	return t.view(v, shape)
}
