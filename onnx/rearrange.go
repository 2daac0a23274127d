package onnx

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

func (t *translator) reshaped(x value, shape []int) (value, error) {
	if product(shape) != product(x.shape()) {
		return value{}, errors.Errorf("shape %v must have the elements of %v", shape, x.shape())
	}
	if x.array != nil {
		return value{array: x.array.reshaped(shape)}, nil
	}
	return value{node: t.view(x.node, shape)}, t.b.Err()
}

func (t *translator) transposed(x value, axes []int) (value, error) {
	if x.array != nil {
		y, err := x.array.transposed(axes)
		return value{array: y}, err
	}
	if slices.IsSorted(axes) {
		return x, nil
	}
	return value{node: t.b.Apply(array.TransposeBy(axes...), x.node)}, t.b.Err()
}

// expanded broadcasts a node to a shape, to which its own must broadcast.
func (t *translator) expanded(x *graph.Node, shape []int) (*graph.Node, error) {
	own := graph.ShapeOf(x)
	aligned := make([]int, len(shape))
	for i := range aligned {
		aligned[i] = extentOf(own, i-len(shape))
	}
	x = t.view(x, aligned)
	for axis, extent := range shape {
		if aligned[axis] != extent {
			x = t.b.Apply(array.Repeat{Axis: axis, Times: extent}, x)
		}
	}
	return x, t.b.Err()
}

// maxParts is the maximum number of pieces into which an axis is cut. Each piece is a separate op.
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

// run returns the number of indices at the beginning that increase by a constant step, and the
// step.
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

// span returns count integers from first on, step apart.
func span(first, step, count int) []int {
	v := make([]int, count)
	for i := range v {
		v[i] = first + i*step
	}
	return v
}

// concatenated joins nodes along an axis.
func (t *translator) concatenated(parts []*graph.Node, axis int) (value, error) {
	if len(parts) == 0 {
		return value{}, errors.New("the result must have at least one element")
	}
	if len(parts) == 1 {
		return value{node: parts[0]}, nil
	}
	var shapes []tensor.Shape
	for _, p := range parts {
		shapes = append(shapes, graph.ShapeOf(p))
	}
	join := array.Concat{Axis: axis}
	if _, err := join.Shape(shapes); err != nil { // before the builder fails, whose error has no advice on batches
		return value{}, err
	}
	return value{node: t.b.Apply(join, parts...)}, t.b.Err()
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

// padded extends an axis on both sides; negative numbers crop it.
func (t *translator) padded(x value, axis, before, after int, mode string, fill float64) (value, error) {
	extent := x.shape()[axis]
	if total := extent + before + after; total < 1 || max(abs(before), abs(after)) > maxFolded {
		return value{}, errors.Errorf("pads %d and %d of axis %d of shape %v leave nothing, or are too large", before, after, axis, x.shape())
	}
	indices := span(-before, 1, extent+before+after)
	if mode == "constant" && (before > 0 || after > 0) {
		return t.filled(x, axis, before, after, fill)
	}
	for k, i := range indices {
		switch mode {
		case "constant": // only crops
		case "edge":
			i = max(0, min(extent-1, i))
		case "wrap":
			i = ((i % extent) + extent) % extent
		case "reflect":
			if extent == 1 {
				i = 0
				break
			}
			period := 2 * (extent - 1)
			if i = ((i % period) + period) % period; i >= extent {
				i = period - i
			}
		default:
			return value{}, errors.Errorf("mode must be constant, reflect, edge or wrap, got %q", mode)
		}
		indices[k] = i
	}
	return t.take(x, axis, indices)
}

// filled pads an axis with a number.
func (t *translator) filled(x value, axis, before, after int, fill float64) (value, error) {
	extent := x.shape()[axis]
	if before < 0 || after < 0 { // crop that side first
		cropped := span(max(0, -before), 1, extent-max(0, -before)-max(0, -after))
		var err error
		if x, err = t.take(x, axis, cropped); err != nil {
			return value{}, err
		}
		extent, before, after = len(cropped), max(0, before), max(0, after)
	}
	total := before + extent + after
	margin := make([]int, len(x.shape()))
	for i := range margin {
		margin[i] = 1
	}
	margin[axis] = total
	edges := &ndarray{margin, Float32, make([]float64, total)}
	for i := range total {
		if i < before || i >= before+extent {
			edges.values[i] = fill
		}
	}
	if x.array != nil {
		side := func(count int) *ndarray {
			shape := slices.Clone(x.shape())
			shape[axis] = count
			return &ndarray{shape, x.array.kind, slices.Repeat([]float64{fill}, product(shape))}
		}
		y, err := joined([]*ndarray{side(before), x.array, side(after)}, axis)
		return value{array: y}, err
	}
	y := t.b.Apply(array.Unslice{Slice: array.Slice{Axis: axis, Start: before, Step: 1, Count: extent}, Extent: total}, x.node)
	if fill != 0 {
		mask, err := t.constant(edges)
		if err != nil {
			return value{}, err
		}
		y = t.b.Apply(op.Add{}, y, mask)
	}
	return value{node: y}, t.b.Err()
}

func abs(v int) int { return max(v, -v) }
