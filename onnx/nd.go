package onnx

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// gatherND translates GatherND: each row of the indices selects an element of the axes from
// batch_dims on.
func gatherND(t *translator, x value) (value, error) {
	indices, known := t.known(1)
	if !known || len(indices.shape) == 0 {
		return value{}, errors.New("the indices must be rows that are constant or follow from shapes")
	}
	shape, last, batches := x.shape(), len(indices.shape)-1, t.integer("batch_dims", 0)
	depth := indices.shape[last]
	if batches < 0 || depth < 1 || batches+depth > len(shape) || batches > last || !slices.Equal(indices.shape[:batches], shape[:batches]) {
		return value{}, errors.Errorf("indices of shape %v, with batch_dims %d, do not select from shape %v", indices.shape, batches, shape)
	}
	if err := t.keepsExamplesApart(0, batches+depth); err != nil {
		return value{}, err
	}
	axes, inner := shape[batches:batches+depth], shape[batches+depth:]
	rows, picked := indices.integers(), make([]int, product(indices.shape[:last]))
	for k := range picked {
		picked[k] = k / product(indices.shape[batches:last]) // the number of the batch
		for i, extent := range axes {
			at := rows[k*depth+i]
			if at < 0 {
				at += extent
			}
			if at < 0 || at >= extent {
				return value{}, errors.Errorf("indices on axis %d of shape %v must be below %d, got %d", batches+i, shape, extent, rows[k*depth+i])
			}
			picked[k] = picked[k]*extent + at
		}
	}
	flat, err := t.reshaped(x, slices.Concat([]int{product(shape[:batches+depth])}, inner))
	if err != nil {
		return value{}, err
	}
	y, err := t.gathered(flat, 0, picked)
	if err != nil {
		return value{}, err
	}
	return t.reshaped(y, slices.Concat(indices.shape[:last], inner))
}

// assignment translates a ScatterND that writes to a slice of each axis, as PyTorch exports
// assignments such as x[:, 1:] = y: the parts of x before and after the slice are joined with y.
func (t *translator) assignment() ([]value, error) {
	if r := t.text("reduction", "none"); r != "none" {
		return nil, errors.Errorf("reduction must be none, got %q", r)
	}
	indices, known := t.known(1)
	if !known {
		return nil, errors.New("the indices must be constant or follow from shapes")
	}
	declared, _, _, err := t.batchAxis(0)
	if err != nil {
		return nil, err
	}
	data, err := t.x(0)
	if err != nil {
		return nil, err
	}
	updates, err := t.x(2)
	if err != nil {
		return nil, err
	}
	shape := []int(graph.ShapeOf(data))
	if declared == nil {
		declared = shape
	}
	start, count := slicesOf(indices, declared)
	if start == nil {
		return nil, errors.New("what follows from images is only supported if the indices select a slice of each axis")
	}
	want := slices.Clone(shape)
	for axis := range start {
		if count[axis] < declared[axis] {
			if err := t.keepsExamplesApart(axis, axis+1); err != nil {
				return nil, err
			}
			want[axis] = count[axis]
		}
	}
	if !slices.Equal(want, graph.ShapeOf(updates)) {
		return nil, errors.Errorf("updates must have shape %v, got %v", want, graph.ShapeOf(updates))
	}
	// regions[i] is data within the slices of the axes before i.
	regions := []value{{node: data}}
	for axis := range start {
		region, err := t.take(regions[axis], axis, span(start[axis], 1, want[axis]))
		if err != nil {
			return nil, err
		}
		regions = append(regions, region)
	}
	y := value{node: updates}
	for axis, first := range slices.Backward(start) {
		var parts []*graph.Node
		add := func(from, to int) error {
			if from == to {
				return nil
			}
			part, err := t.take(regions[axis], axis, span(from, 1, to-from))
			parts = append(parts, part.node)
			return err
		}
		if err := add(0, first); err != nil {
			return nil, err
		}
		parts = append(parts, y.node)
		if err := add(first+want[axis], shape[axis]); err != nil {
			return nil, err
		}
		if y, err = t.concatenated(parts, axis); err != nil {
			return nil, err
		}
	}
	return []value{y}, nil
}

// slicesOf returns the first index and the number of indices on each of the first k axes of a
// shape, if indices [n1 ... nk k] has all combinations of consecutive indices on them, in order. It
// returns nil if it does not.
func slicesOf(indices *ndarray, shape []int) (start, count []int) {
	depth := len(indices.shape) - 1
	if depth < 1 || indices.shape[depth] != depth || depth > len(shape) || len(indices.values) == 0 {
		return nil, nil
	}
	all, count := indices.integers(), indices.shape[:depth]
	start = slices.Clone(all[:depth])
	for axis, first := range start {
		if first < 0 || first+count[axis] > shape[axis] {
			return nil, nil
		}
	}
	index := make([]int, depth)
	for k := 0; k < len(all); k += depth {
		for axis, i := range index {
			if all[k+axis] != start[axis]+i {
				return nil, nil
			}
		}
		advance(index, count)
	}
	return start, count
}
