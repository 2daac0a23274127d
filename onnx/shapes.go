package onnx

import (
	"slices"

	"github.com/pkg/errors"
)

// moved returns the translation of an operator that only rearranges the elements of its first
// input: known values are rearranged at once. arrange returns the rearranged value.
func moved(arrange func(t *translator, x value) (value, error)) translation {
	return func(t *translator) ([]value, error) {
		x, err := t.operand(0)
		if err != nil {
			return nil, err
		}
		y, err := arrange(t, x)
		return []value{y}, err
	}
}

// rebatching returns an arrangement of an operator that changes shapes: values that contain a batch
// of another size than the declared one get the declared shape with the actual size in it.
func rebatching(arrange func(t *translator, x value) (value, error)) func(t *translator, x value) (value, error) {
	return func(t *translator, x value) (value, error) {
		switch shape, ok, err := t.rebatched(); {
		case err != nil:
			return value{}, err
		case ok:
			return t.reshaped(x, shape)
		}
		return arrange(t, x)
	}
}

func reshape(t *translator, x value) (value, error) {
	target, err := t.extents("shape", 1)
	if err != nil {
		return value{}, err
	}
	from := x.shape()
	shape, open := slices.Clone(target), -1
	for i, extent := range shape {
		switch {
		case extent == 0 && t.integer("allowzero", 0) == 0:
			if i >= len(from) {
				return value{}, errors.Errorf("shape %v copies axis %d of %v, which has none", target, i, from)
			}
			shape[i] = from[i]
		case extent == -1:
			if open >= 0 {
				return value{}, errors.Errorf("shape %v must leave one extent open, not several", target)
			}
			open = i
		}
	}
	if open >= 0 {
		shape[open] = 1
		rest := product(shape)
		if rest <= 0 || product(from)%rest != 0 {
			return value{}, errors.Errorf("shape %v does not divide the elements of %v", target, from)
		}
		shape[open] = product(from) / rest
	}
	return t.reshaped(x, shape)
}

func flatten(t *translator, x value) (value, error) {
	axis, err := t.axis(t.integer("axis", 1), len(x.shape()), true)
	if err != nil {
		return value{}, err
	}
	return t.reshaped(x, []int{product(x.shape()[:axis]), product(x.shape()[axis:])})
}

// squeeze without axes drops all axes of extent 1, except the examples' axis in a batch of one.
func squeeze(t *translator, x value) (value, error) {
	axes, given, err := t.integersOf("axes", 1)
	if err != nil {
		return value{}, err
	}
	drop := map[int]bool{}
	for _, axis := range axes {
		at, err := t.axis(axis, len(x.shape()), false)
		if err != nil {
			return value{}, err
		}
		drop[at] = true
	}
	examples := x.array == nil && t.model.tensors[t.inputs[0]] == nil && t.batch == 1
	shape := []int{}
	for axis, extent := range x.shape() {
		if drop[axis] && extent != 1 {
			return value{}, errors.Errorf("axis %d of shape %v must have extent 1", axis, x.shape())
		}
		if given && !drop[axis] || !given && (extent != 1 || axis == 0 && examples) {
			shape = append(shape, extent)
		}
	}
	return t.reshaped(x, shape)
}

func unsqueeze(t *translator, x value) (value, error) {
	axes, _, err := t.integersOf("axes", 1)
	if err != nil {
		return value{}, err
	}
	shape := make([]int, len(x.shape())+len(axes))
	for _, axis := range axes {
		at, err := t.axis(axis, len(shape), false)
		if err != nil {
			return value{}, err
		}
		if shape[at] == 1 {
			return value{}, errors.Errorf("axes %v must differ", axes)
		}
		shape[at] = 1
	}
	rest := x.shape()
	for i := range shape {
		if shape[i] == 0 {
			shape[i], rest = rest[0], rest[1:]
		}
	}
	return t.reshaped(x, shape)
}

func transpose(t *translator, x value) (value, error) {
	n := len(x.shape())
	axes, given, err := t.integersOf("perm", -1)
	if err != nil {
		return value{}, err
	}
	if !given {
		for i := range n {
			axes = append(axes, n-1-i)
		}
	}
	sorted := slices.Sorted(slices.Values(axes))
	for i := range max(n, len(axes)) {
		if i >= len(sorted) || sorted[i] != i || len(axes) != n {
			return value{}, errors.Errorf("perm must be a permutation of %d axes, got %v", n, axes)
		}
	}
	return t.transposed(x, axes)
}

func expand(t *translator, x value) (value, error) {
	target, err := t.extents("shape", 1)
	if err != nil {
		return value{}, err
	}
	declared, axis, batched, err := t.batchAxis(0)
	if err != nil {
		return value{}, err
	}
	if at := axis + len(target) - len(declared); batched && at >= 0 && target[at] == declared[axis] {
		target[at] = x.shape()[axis] // the size of the batch is a constant
	}
	shape, err := broadcastShape(x.shape(), target)
	if err != nil {
		return value{}, err
	}
	if x.array == nil {
		y, err := t.expanded(x.node, shape)
		return value{node: y}, err
	}
	y, err := broadcast(x.array, &ndarray{shape: target, values: make([]float64, product(target))}, x.array.kind,
		func(v, _ float64) float64 { return v })
	return value{array: y}, err
}

func tile(t *translator, x value) (value, error) {
	repeats, _, err := t.integersOf("repeats", 1)
	if err != nil {
		return value{}, err
	}
	if len(repeats) != len(x.shape()) || len(repeats) > 0 && (slices.Min(repeats) < 1 || slices.Max(repeats) > maxFolded) {
		return value{}, errors.Errorf("repeats must be at least 1 for each axis of %v, got %v", x.shape(), repeats)
	}
	for axis, times := range repeats {
		if times == 1 {
			continue
		}
		if err := t.keepsExamplesApart(axis, axis+1); err != nil {
			return value{}, err
		}
		extent := x.shape()[axis]
		if _, err := elements([]int{extent, times}); err != nil || extent*times > maxFolded {
			return value{}, errors.Errorf("repeats %v make shape %v too large", repeats, x.shape())
		}
		if x, err = t.take(x, axis, slices.Repeat(span(0, 1, extent), times)); err != nil {
			return value{}, err
		}
	}
	return x, nil
}
