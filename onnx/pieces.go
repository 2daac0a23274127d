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
	if parts, err = t.perExample(parts, axis); err != nil {
		return nil, err
	}
	y, err := t.concatenated(parts, axis)
	return []value{y}, err
}

// perExample repeats the node's inputs that do not contain the batch for each example, if others
// do. Such an input, for example a transformer's class token, exists for the model's one example
// only.
func (t *translator) perExample(parts []*graph.Node, axis int) ([]*graph.Node, error) {
	for i := range parts {
		declared, batch, ok, err := t.batchAxis(i)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if batch == axis {
			return nil, errors.Errorf("axis %d of %v contains the batch, to which others would be appended: %s", axis, declared, exportDynamic)
		}
		for k, part := range parts {
			shape := slices.Clone(graph.ShapeOf(part))
			if batch < len(shape) && shape[batch] == 1 && t.fixedBatch == 1 {
				shape[batch] = t.batch
				if parts[k], err = t.expanded(part, shape); err != nil {
					return nil, err
				}
			}
		}
		return parts, nil
	}
	return parts, nil
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
	if err := t.keepsExamplesApart(axis, axis+1); err != nil {
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
		if !slices.Equal(indices, span(0, 1, x.shape()[axis])) {
			err = t.keepsExamplesApart(axis, axis+1)
		}
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
	at, extent, picked := indices.integers(), x.shape()[axis], indices.shape
	declared, batch, ok, err := t.batchAxis(0)
	if err != nil {
		return value{}, err
	}
	flat := ok && batch == axis && t.fixedBatch == 1 && t.minor[t.inputs[0]] == 1 && len(picked) > 0 && picked[0] == 1
	if flat {
		extent = declared[axis]
	} else if err := t.keepsExamplesApart(axis, axis+1); err != nil {
		return value{}, err
	}
	for i, v := range at {
		if v < 0 {
			at[i] += extent
		}
	}
	if flat { // the indices are of one example: the same of each
		picked = append([]int{t.batch}, picked[1:]...)
		of := at
		for example := 1; example < t.batch; example++ {
			for _, i := range of {
				at = append(at, i+example*extent)
			}
		}
	}
	shape := slices.Concat(x.shape()[:axis], picked, x.shape()[axis+1:])
	y, err := t.gathered(x, axis, at)
	if err != nil {
		return value{}, err
	}
	return t.reshaped(y, shape)
}

// maxPicked is the maximum number of elements of the matrix that selects indices by a product.
const maxPicked = 1 << 24

// gathered is take for many indices without a pattern, such as relative positions: a product with a
// matrix of zeros and ones selects them.
func (t *translator) gathered(x value, axis int, indices []int) (value, error) {
	extent := x.shape()[axis]
	if x.array != nil || runs(indices) <= maxParts || len(indices) > maxPicked/extent {
		return t.take(x, axis, indices)
	}
	choice := &ndarray{[]int{extent, len(indices)}, Float32, make([]float64, extent*len(indices))}
	for k, i := range indices {
		if i < 0 || i >= extent {
			return value{}, errors.Errorf("indices on axis %d of shape %v must be below %d, got %d", axis, x.shape(), extent, i)
		}
		choice.values[i*len(indices)+k] = 1
	}
	return t.mixed(x, axis, choice)
}

// runs returns the number of pieces into which take would cut an axis.
func runs(indices []int) (n int) {
	for ; len(indices) > 0; n++ {
		count, _ := run(indices)
		indices = indices[count:]
	}
	return n
}
