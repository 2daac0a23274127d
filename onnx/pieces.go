package onnx

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

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

// sliceIndices returns the indices that [start:end:step] selects on an axis, as in Python, except
// that a start before the first element is the first one also if step is negative.
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
	from, to := max(0, within(start)), within(end)
	if count := (to - from + step - sign(step)) / step; count > 0 && extent > 0 {
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
