package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// resize translates Resize, and Upsample of earlier opsets. Along each axis, an element of the
// result is a weighted sum of elements of the input: a product with a matrix that is known.
func resize(t *translator) ([]value, error) {
	x, err := t.operand(0)
	if err != nil {
		return nil, err
	}
	axes, scales, sizes, err := t.resizing(x.shape())
	if err != nil {
		return nil, err
	}
	for i, axis := range axes {
		from := x.shape()[axis]
		scale := scales[i]
		to := sizes[i]
		if to == from && scale == 1 {
			continue
		}
		if !(scale > 0) || to < 1 || to > maxFolded/from {
			return nil, errors.Errorf("axis %d of shape %v must keep between 1 and %d elements, got %d by the factor %g", axis, x.shape(), maxFolded/from, to, scale)
		}
		if err := t.keepsExamplesApart(axis, axis+1); err != nil {
			return nil, err
		}
		weights, err := t.interpolation(from, to, scale)
		if err != nil {
			return nil, err
		}
		if x, err = t.mixed(x, axis, weights); err != nil {
			return nil, err
		}
	}
	return []value{x}, nil
}

// resizing returns the axes that are resized, with their factors and new extents.
func (t *translator) resizing(shape []int) (axes []int, scales []float64, sizes []int, err error) {
	at := 2 // of the scales: since opset 11, Resize has a region before them
	if t.op == "Upsample" || t.opset < 11 {
		at = 1
	}
	axes, given, err := t.integersOf("axes", -1)
	if err != nil {
		return nil, nil, nil, err
	}
	if !given {
		axes = span(0, 1, len(shape))
	}
	for i := range axes {
		if axes[i], err = t.axis(axes[i], len(shape), false); err != nil {
			return nil, nil, nil, err
		}
	}
	if a := t.attributes["scales"]; a != nil {
		scales = a.floats
	} else if a, ok := t.known(at); ok {
		scales = a.values
	}
	if len(scales) == 0 {
		a, ok := t.known(3)
		if !ok {
			return nil, nil, nil, errors.New("the scales or sizes must be constant or follow from shapes")
		}
		sizes = a.integers()
		declared, batch, ok, err := t.batchAxis(0)
		if err != nil {
			return nil, nil, nil, err
		}
		for i, axis := range axes {
			if ok && axis == batch && i < len(sizes) && sizes[i] == declared[axis] {
				sizes[i] = shape[axis] // the size of the batch is a constant
			}
		}
	}
	if n := len(scales) + len(sizes); n != len(axes) {
		return nil, nil, nil, errors.Errorf("must have a factor or size for each of %d axes, got %d", len(axes), n)
	}
	if len(scales) > 0 {
		for i, scale := range scales {
			sizes = append(sizes, int(math.Floor(float64(float32(shape[axes[i]])*float32(scale))))) // 10 by float32(0.7) is 7
		}
		return axes, scales, sizes, nil
	}
	scales = make([]float64, len(sizes))
	for i, size := range sizes {
		scales[i] = float64(size) / float64(shape[axes[i]])
	}
	common := 0.0
	switch policy := t.text("keep_aspect_ratio_policy", "stretch"); policy {
	case "stretch":
		return axes, scales, sizes, nil
	case "not_larger":
		common = slices.Min(scales)
	case "not_smaller":
		common = slices.Max(scales)
	default:
		return nil, nil, nil, errors.Errorf("keep_aspect_ratio_policy must be stretch, not_larger or not_smaller, got %q", policy)
	}
	for i := range sizes {
		scales[i], sizes[i] = common, int(math.Floor(common*float64(shape[axes[i]])+0.5))
	}
	return axes, scales, sizes, nil
}

// interpolation returns the matrix [from to] by which an axis is resized.
func (t *translator) interpolation(from, to int, scale float64) (*ndarray, error) {
	place, err := t.placement(from, to, scale)
	if err != nil {
		return nil, err
	}
	weights, err := newArray(Float32, []int{from, to})
	if err != nil {
		return nil, err
	}
	var kernel func(distance float64) float64
	var radius float64
	switch mode := t.text("mode", "nearest"); mode {
	case "nearest":
		for k := range to {
			at, err := t.nearest(place(float64(k)))
			if err != nil {
				return nil, err
			}
			weights.values[max(0, min(from-1, at))*to+k] = 1
		}
		return weights, nil
	case "linear":
		kernel, radius = func(d float64) float64 { return max(0, 1-d) }, 1
	case "cubic":
		kernel, radius = cubic(t.float("cubic_coeff_a", -0.75)), 2
	default:
		return nil, errors.Errorf("mode must be nearest, linear or cubic, got %q", mode)
	}
	stretch := 1.0 // of the kernel
	if t.integer("antialias", 0) != 0 {
		stretch = max(1, 1/scale)
	}
	for k := range to {
		x, total := place(float64(k)), 0.0
		first, last := int(math.Floor(x-radius*stretch)), int(math.Ceil(x+radius*stretch))
		share := func(at int) float64 {
			if t.integer("exclude_outside", 0) != 0 && (at < 0 || at >= from) {
				return 0
			}
			return kernel(math.Abs(float64(at)-x) / stretch)
		}
		for at := first; at <= last; at++ {
			total += share(at)
		}
		for at := first; at <= last; at++ {
			weights.values[max(0, min(from-1, at))*to+k] += share(at) / total
		}
	}
	return weights, nil
}

// placement returns where in the input, whose elements are at 0, 1, ..., an element of the result
// is.
func (t *translator) placement(from, to int, scale float64) (func(x float64) float64, error) {
	otherwise := "half_pixel"
	if t.op == "Upsample" || t.opset < 11 {
		otherwise = "asymmetric"
	}
	centred := func(x float64) float64 { return (x+0.5)/scale - 0.5 }
	switch mode := t.text("coordinate_transformation_mode", otherwise); mode {
	case "half_pixel":
		return centred, nil
	case "half_pixel_symmetric":
		adjusted := float64(to) / (float64(from) * scale)
		offset := float64(from) / 2 * (1 - adjusted)
		return func(x float64) float64 { return offset + centred(x) }, nil
	case "pytorch_half_pixel":
		if to == 1 {
			return func(float64) float64 { return 0 }, nil
		}
		return centred, nil
	case "align_corners":
		if to == 1 {
			return func(float64) float64 { return 0 }, nil
		}
		return func(x float64) float64 { return x * float64(from-1) / (scale*float64(from) - 1) }, nil
	case "asymmetric":
		return func(x float64) float64 { return x / scale }, nil
	default:
		return nil, errors.Errorf("coordinate_transformation_mode must not be %q", mode)
	}
}

// nearest rounds a place in the input. The place is that in float32, as runtimes compute it: 8 by
// float32(1.6), which is above 1.6, is at 5.
func (t *translator) nearest(x float64) (int, error) {
	x = float64(float32(x))
	otherwise := "round_prefer_floor"
	if t.op == "Upsample" || t.opset < 11 {
		otherwise = "floor"
	}
	switch mode := t.text("nearest_mode", otherwise); mode {
	case "round_prefer_floor":
		return int(math.Ceil(x - 0.5)), nil
	case "round_prefer_ceil":
		return int(math.Floor(x + 0.5)), nil
	case "floor":
		return int(math.Floor(x)), nil
	case "ceil":
		return int(math.Ceil(x)), nil
	default:
		return 0, errors.Errorf("nearest_mode must be round_prefer_floor, round_prefer_ceil, floor or ceil, got %q", mode)
	}
}

// cubic returns the kernel of cubic convolution (Keys, Cubic convolution interpolation for digital
// image processing, 1981).
func cubic(a float64) func(distance float64) float64 {
	return func(d float64) float64 {
		switch {
		case d <= 1:
			return ((a+2)*d-(a+3))*d*d + 1
		case d < 2:
			return ((a*d-5*a)*d+8*a)*d - 4*a
		}
		return 0
	}
}

// mixed replaces the elements along an axis by their products with the columns of a matrix.
func (t *translator) mixed(x value, axis int, weights *ndarray) (value, error) {
	node, err := t.asNode(x)
	if err != nil {
		return value{}, err
	}
	matrix, err := t.constant(weights)
	if err != nil {
		return value{}, err
	}
	shape := []int(graph.ShapeOf(node))
	swap, last := span(0, 1, len(shape)), len(shape)-1
	swap[axis], swap[last] = last, axis
	turned, err := t.transposed(value{node: node}, swap)
	if err != nil {
		return value{}, err
	}
	shape = append([]int{}, graph.ShapeOf(turned.node)...)
	y := t.b.Apply(op.MatMul{}, t.view(turned.node, []int{product(shape[:last]), shape[last]}), matrix)
	if t.b.Err() != nil {
		return value{}, t.b.Err()
	}
	shape[last] = weights.shape[1]
	return t.transposed(value{node: t.view(y, shape)}, swap)
}
