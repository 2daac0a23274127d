package onnx

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// maxParts is the maximum number of pieces into which an axis is cut. Each is an op of its own.
const maxParts = 1024

// take returns the elements at the given indices of an axis.
func (t *translator) take(x value, axis int, indices []int) (value, error) {
	extent := x.shape()[axis]
	for _, i := range indices {
		if i < 0 || i >= extent {
			return value{}, errors.Errorf("indices on axis %d of shape %v must be below %d, got %d", axis, x.shape(), extent, i)
		}
	}
	if x.array != nil {
		y, err := x.array.take(axis, indices)
		return value{array: y}, err
	}
	var parts []*graph.Node
	for from := 0; from < len(indices); {
		if len(parts) == maxParts {
			return value{}, errors.Errorf("more than %d parts of an axis of shape %v are too large a graph", maxParts, x.shape())
		}
		count, step := run(indices[from:])
		part := array.Slice{Axis: axis, Start: indices[from], Step: step, Count: count}
		node := x.node
		if part.Count != extent || part.Step != 1 {
			node = t.b.Apply(part, node)
		}
		parts, from = append(parts, node), from+count
	}
	return t.concatenated(parts, axis)
}

// run returns how many of the first indices are equally far apart, in rising order, and how far.
func run(indices []int) (count, step int) {
	if len(indices) == 1 || indices[1] <= indices[0] {
		return 1, 1
	}
	step = indices[1] - indices[0]
	for count = 2; count < len(indices) && indices[count]-indices[count-1] == step; {
		count++
	}
	return count, step
}

// concatenated joins nodes along an axis: each is put among zeros, and the results are added.
func (t *translator) concatenated(parts []*graph.Node, axis int) (value, error) {
	if len(parts) == 0 {
		return value{}, errors.New("the result must have at least one element")
	}
	total := 0
	for _, p := range parts {
		shape := graph.ShapeOf(p)
		if len(shape) != len(graph.ShapeOf(parts[0])) || axis >= len(shape) {
			return value{}, errors.Errorf("shapes %v and %v do not join on axis %d", graph.ShapeOf(parts[0]), shape, axis)
		}
		total += shape[axis]
	}
	var sum *graph.Node
	at := 0
	for _, p := range parts {
		extent := graph.ShapeOf(p)[axis]
		placed := p
		if extent != total {
			placed = t.b.Apply(array.Unslice{Slice: array.Slice{Axis: axis, Start: at, Step: 1, Count: extent}, Extent: total}, p)
		}
		if at += extent; sum == nil {
			sum = placed
		} else {
			sum = t.b.Apply(op.Add{}, sum, placed)
		}
	}
	return value{node: sum}, t.b.Err()
}

func concat(t *translator) ([]value, error) {
	if err := t.needs(len(t.inputs)); err != nil {
		return nil, err
	}
	first, err := t.operand(0)
	if err != nil {
		return nil, err
	}
	axis, err := t.axis(t.integer("axis", 0), len(first.shape()), false)
	if err != nil {
		return nil, err
	}
	if inputs, ok := t.folded(); ok {
		y, err := joined(inputs, axis)
		return []value{{array: y}}, err
	}
	var parts []*graph.Node
	for i := range t.inputs {
		x, err := t.x(i)
		if err != nil {
			return nil, err
		}
		parts = append(parts, x)
	}
	y, err := t.concatenated(parts, axis)
	return []value{y}, err
}

// joined concatenates known values.
func joined(parts []*ndarray, axis int) (*ndarray, error) {
	shape := slices.Clone(parts[0].shape)
	shape[axis] = 0
	for _, p := range parts {
		if len(p.shape) != len(shape) {
			return nil, errors.Errorf("shapes %v and %v do not join", parts[0].shape, p.shape)
		}
		for i, extent := range p.shape {
			if i != axis && extent != shape[i] {
				return nil, errors.Errorf("shapes %v and %v do not join on axis %d", parts[0].shape, p.shape, axis)
			}
		}
		shape[axis] += p.shape[axis]
	}
	y, err := newArray(parts[0].kind, shape)
	if err != nil {
		return nil, err
	}
	at, width := 0, product(shape[axis:])
	for _, p := range parts {
		own := product(p.shape[axis:])
		for o := range product(shape[:axis]) {
			copy(y.values[o*width+at:], p.values[o*own:][:own])
		}
		at += own
	}
	return y, nil
}

func split(t *translator) ([]value, error) {
	x, err := t.operand(0)
	if err != nil {
		return nil, err
	}
	axis, err := t.axis(t.integer("axis", 0), len(x.shape()), false)
	if err != nil {
		return nil, err
	}
	sizes, given, err := t.integersOf("split", 1)
	if err != nil {
		return nil, err
	}
	extent, parts := x.shape()[axis], len(t.outputs)
	if !given {
		each := (extent + parts - 1) / parts
		for left := extent; left > 0; left -= each {
			sizes = append(sizes, min(each, left))
		}
	}
	if total := sum(sizes); total != extent || len(sizes) != parts || slices.Min(sizes) < 1 {
		return nil, errors.Errorf("%d outputs must have the %d elements of axis %d between them, got sizes %v", parts, extent, axis, sizes)
	}
	var made []value
	at := 0
	for _, size := range sizes {
		y, err := t.take(x, axis, span(at, 1, size))
		if err != nil {
			return nil, err
		}
		made, at = append(made, y), at+size
	}
	return made, nil
}

func sum(v []int) (total int) {
	for _, x := range v {
		total += x
	}
	return total
}

// span returns count integers from first on, step apart.
func span(first, step, count int) []int {
	v := make([]int, count)
	for i := range v {
		v[i] = first + i*step
	}
	return v
}

func slice(t *translator, x value) (value, error) {
	starts, _, err := t.integersOf("starts", 1)
	if err != nil {
		return value{}, err
	}
	ends, _, err := t.integersOf("ends", 2)
	if err != nil {
		return value{}, err
	}
	axes, given, err := t.integersOf("axes", 3)
	if err != nil {
		return value{}, err
	}
	if !given {
		axes = span(0, 1, len(starts))
	}
	steps, given, err := t.integersOf("steps", 4)
	if err != nil {
		return value{}, err
	}
	if !given {
		steps = slices.Repeat([]int{1}, len(starts))
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
		return value{}, errors.Errorf("starts, ends, axes and steps must be of one length, got %v, %v, %v, %v", starts, ends, axes, steps)
	}
	for i := range starts {
		axis, err := t.axis(axes[i], len(x.shape()), false)
		if err != nil {
			return value{}, err
		}
		indices, err := sliceIndices(starts[i], ends[i], steps[i], x.shape()[axis])
		if err != nil {
			return value{}, err
		}
		if x, err = t.take(x, axis, indices); err != nil {
			return value{}, err
		}
	}
	return x, nil
}

// sliceIndices returns what [start:end:step] selects of an axis, as in Python.
func sliceIndices(start, end, step, extent int) ([]int, error) {
	if step == 0 {
		return nil, errors.New("steps must not be 0")
	}
	low, high := 0, extent
	if step < 0 {
		low, high = -1, extent-1
	}
	within := func(i int) int {
		if i < 0 {
			i += extent
		}
		return max(low, min(high, i))
	}
	from, to := within(start), within(end)
	if count := (to - from + step - sign(step)) / step; count > 0 {
		return span(from, step, count), nil
	}
	return nil, nil
}

func sign(v int) int {
	if v < 0 {
		return -1
	}
	return 1
}

func gather(t *translator, x value) (value, error) {
	axis, err := t.axis(t.integer("axis", 0), len(x.shape()), false)
	if err != nil {
		return value{}, err
	}
	indices, known := t.known(1)
	if !known {
		return value{}, errors.New("the indices must be constant or follow from shapes")
	}
	at := indices.integers()
	for i, v := range at {
		if v < 0 {
			at[i] += x.shape()[axis]
		}
	}
	shape := slices.Concat(x.shape()[:axis], indices.shape, x.shape()[axis+1:])
	y, err := t.take(x, axis, at)
	if err != nil {
		return value{}, err
	}
	return t.reshaped(y, shape)
}
