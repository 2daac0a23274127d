package stock

import (
	"fmt"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// checkAlong refuses, in a network, an op along axis 0 if that is the axis of the examples: a sum
// over the batch, for example, makes the output of each example depend on all. It returns false if
// it refuses.
func (t *translator) checkAlong(m *nodeInfo, x *gorgonia.Node, axes ...int) bool {
	for _, axis := range axes {
		if axis == 0 && t.hasBatchAxis(x) && t.refuseMixing(m, "it works along the batch") {
			return false
		}
	}
	return true
}

// sum translates the sum over some axes, which drops these axes. A Mean is a sum and a division by
// a size in Gorgonia's graph.
func (t *translator) sum(m *nodeInfo) *graph.Node {
	over := m.ints("along")
	if !t.checkAlong(m, m.inputs[0], over...) {
		return nil
	}
	return t.apply(op.Sum{Axes: op.AxesOf(over...)}, t.visit(m.inputs[0]))
}

// max translates the maximum over some axes. RowMaximum takes matrices, so the axes are transposed
// to the end and merged into the rows' elements.
func (t *translator) max(m *nodeInfo) *graph.Node {
	over := op.AxesOf(m.ints("along")...)
	x := t.visit(m.inputs[0])
	if x == nil || !t.checkAlong(m, m.inputs[0], m.ints("along")...) {
		return nil
	}
	var kept, last []int
	for axis := range graph.ShapeOf(x) {
		if over&op.AxesOf(axis) != 0 {
			last = append(last, axis)
		} else {
			kept = append(kept, axis)
		}
	}
	rows := 1
	for _, axis := range kept {
		rows *= graph.ShapeOf(x)[axis]
	}
	x = t.reorder(x, append(kept, last...))
	maximum := t.apply(array.RowMaximum{}, t.view(x, tensor.Shape{rows, graph.ShapeOf(x).Elements() / rows}))
	return t.view(maximum, t.shape(m.Node))
}

// reorder transposes x, unless the axes are in order.
func (t *translator) reorder(x *graph.Node, axes []int) *graph.Node {
	for i, axis := range axes {
		if i != axis {
			return t.apply(array.TransposeBy(axes...), x)
		}
	}
	return x
}

// softmax translates SoftMax and LogSoftMax along any axis, by exchanging it with the last one and
// back. Gorgonia's axis -1 is the last one, except for a column vector, where it is the first.
func (t *translator) softmax(m *nodeInfo) *graph.Node {
	shape, axis := m.Shape(), m.int("axis")
	if axis == -1 {
		axis = len(shape) - 1
		if shape.IsColVec() {
			axis = 0
		}
	}
	if axis < 0 || axis >= len(shape) {
		return t.refuse(m, fmt.Sprintf("its axis is %d in shape %v", axis, shape), "give one of the axes, from 0 on")
	}
	if !t.checkAlong(m, m.inputs[0], axis) {
		return nil
	}
	// probabilities: Gorgonia has turned this softmax into a log softmax, but the product that it
	// belongs to is computed as it was written, see undoLogarithm.
	var o graph.Op = op.Softmax{}
	if m.bool("isLog") && !m.probabilities {
		o = array.LogSoftmax{}
	}
	x := t.visit(m.inputs[0])
	if x == nil {
		return nil
	}
	// An exchange of two axes is its own inverse.
	order := exchange(len(shape), axis)
	moved := t.reorder(x, order)
	classes := shape[axis]
	y := t.apply(o, t.view(moved, tensor.Shape{graph.ShapeOf(moved).Elements() / classes, classes}))
	return t.reorder(t.view(y, graph.ShapeOf(moved)), order)
}

// exchange returns the permutation that exchanges an axis with the last one.
func exchange(axes, axis int) []int {
	order := make([]int, axes)
	for i := range order {
		order[i] = i
	}
	order[axis], order[axes-1] = axes-1, axis
	return order
}

// repeat translates a repetition along an axis. The number of repetitions is the op's second input;
// it must be constant, or the batch size. A repetition by the batch size is how Gorgonia broadcasts
// a bias to all examples.
func (t *translator) repeat(m *nodeInfo) *graph.Node {
	from, along := m.inputs[0].Shape(), m.int("along")
	x := t.visit(m.inputs[0])
	if x == nil {
		return nil
	}
	if along < len(from) && !t.checkAlong(m, m.inputs[0], along) {
		return nil
	}
	// In a network the stock graph's number of repetitions is wrong if it is the batch.
	times, known := t.number(m.inputs[1])
	if !known {
		size := t.info[m.inputs[1]]
		if !size.is("sizeOp") || size.int("axis") != 0 || !t.hasBatchAxis(size.inputs[0]) || along != 0 {
			return t.refuse(m, "the number of repetitions is not known", "repeat by a constant or by another node's extent")
		}
		times, t.batched[m.Node] = float64(t.shape(size.inputs[0])[0]), true
	}
	if len(from) <= along { // a scalar, or a vector that gets more axes
		shape := make(tensor.Shape, along+1)
		for i := range shape {
			shape[i] = 1
			if i < len(from) {
				shape[i] = graph.ShapeOf(x)[i]
			}
		}
		x = t.view(x, shape)
	}
	return t.apply(array.Repeat{Axis: along, Times: int(times)}, x)
}

// slice translates a range along an axis. A range of one element drops the axis, as in Gorgonia.
func (t *translator) slice(m *nodeInfo) *graph.Node {
	along := m.int("along")
	x := t.visit(m.inputs[0])
	if x == nil || !t.checkAlong(m, m.inputs[0], along) {
		return nil
	}
	ranged := m.Op().(interface{ IsSlice() dense.Slice })
	extent := graph.ShapeOf(x)[along]
	// A nil slice is the whole axis.
	s := array.Slice{Axis: along, Step: 1, Count: extent}
	if r := ranged.IsSlice(); r != nil {
		s.Start, s.Step, s.Count = r.Start(), max(1, r.Step()), 1
		if to := t.shape(m.Node); len(to) == len(graph.ShapeOf(x)) {
			s.Count = to[along]
		}
		if t.userCount(m) > 1 && hidesAnother(r, extent) {
			return t.refuse(m, fmt.Sprintf("it is used twice, and may be two slices of an axis of %d, which Gorgonia takes for one if they begin 256 apart", extent),
				"let both users take a Reshape of it to its own shape if it is one, and slice a Reshape of the input if it is two")
		}
	}
	return t.apply(s, x)
}

// hidesAnother reports whether there is another range of the same length whose bounds have the same
// lowest bytes: Gorgonia's hash contains only these, so it merges the two. For example, [0:10] and
// [256:266] of an axis of 300 become one node, as do [0:2] and [0:514:257].
func hidesAnother(r dense.Slice, extent int) bool {
	return r.Start() >= 256 || r.Step() >= 256 || r.End()+256 <= extent
}

// concat translates a concatenation.
func (t *translator) concat(m *nodeInfo) *graph.Node {
	axis := m.int("axis")
	if !t.checkAlong(m, m.Node, axis) {
		return nil
	}
	var parts []*graph.Node
	for _, input := range m.inputs {
		x := t.visit(input)
		if x == nil {
			return nil
		}
		parts = append(parts, x)
	}
	return t.apply(array.Concat{Axis: axis}, parts...)
}

// at translates the access to one element, which has no gradient in Gorgonia either.
func (t *translator) at(m *nodeInfo) *graph.Node {
	// The coordinates as an offset in row-major order.
	index := 0
	for i, extent := range m.inputs[0].Shape() {
		index = index*extent + m.ints("coordinates")[i]
	}
	if t.hasBatchAxis(m.inputs[0]) && t.refuseMixing(m, "it takes an element of one example") {
		return nil
	}
	return t.apply(array.Element{Index: index}, t.visit(m.inputs[0]))
}
