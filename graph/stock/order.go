package stock

import (
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/tensor"
)

// floatsOf returns a copy of a value's numbers in row-major order, as float64, or nil if they are
// not floats.
func floatsOf(v gorgonia.Value) []float64 {
	switch data := rowMajor(v).(type) {
	case float32:
		return []float64{float64(data)}
	case float64:
		return []float64{data}
	case []float32:
		return tensor.Convert[float64](data)
	case []float64:
		return append([]float64(nil), data...)
	}
	return nil
}

// rowMajor returns a value's Data in row-major order. Tensors in another order are copied: those
// made AsFortran, transposed ones whose elements were not moved, and slices. Others share their
// memory, which must only be read.
func rowMajor(v gorgonia.Value) any {
	places := rowMajorOffsets(v)
	if places == nil {
		return v.Data()
	}
	switch data := v.Data().(type) {
	case []float32:
		return gather(data, places)
	case []float64:
		return gather(data, places)
	default:
		return data
	}
}

// gather returns the elements at places, the opposite of scatter.
func gather[T any](from []T, places []int) []T {
	to := make([]T, len(places))
	for i, at := range places {
		to[i] = from[at]
	}
	return to
}

// rowMajorOffsets returns the offset in memory of each element of a tensor, in row-major order, or
// nil if the memory is in that order. It uses only the strides: Materialize does not change a
// column-major tensor, and the flags of slices and transpositions do not distinguish all orders.
func rowMajorOffsets(v gorgonia.Value) []int {
	d, ok := v.(*dense.Dense)
	if !ok {
		return nil
	}
	shape, strides := d.Shape(), d.Strides()
	stride := func(axis int) int { return strides[min(axis, len(strides)-1)] } // a vector's has one
	ordered, next := true, 1
	// Row-major: the stride of an axis is the product of the extents after it. The stride of an
	// axis of extent 1 does not matter.
	for axis := len(shape) - 1; axis >= 0; axis-- {
		ordered = ordered && (shape[axis] == 1 || stride(axis) == next)
		next *= shape[axis]
	}
	if ordered {
		return nil
	}
	// One axis after the other: each place is followed by those along the next axis.
	places := make([]int, 1, next)
	for axis, extent := range shape {
		outer := places
		places = make([]int, 0, next)
		for _, at := range outer {
			for i := range extent {
				places = append(places, at+i*stride(axis))
			}
		}
	}
	return places
}
