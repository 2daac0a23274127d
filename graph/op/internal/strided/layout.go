package strided

import "github.com/pollen-ml/pollen/tensor"

// MaxAxes is the most axes of a walk.
const MaxAxes = 6

// Layout finds the offset, in an operand's memory, of element i of a row-major count over some axes.
type Layout struct {
	Axes             int
	Extents, Strides [MaxAxes]int
}

// Add appends an axis, inside the present ones.
func (w *Layout) Add(extent, stride int) {
	w.Extents[w.Axes], w.Strides[w.Axes] = extent, stride
	w.Axes++
}

// Count is the number of elements.
func (w *Layout) Count() int { return tensor.Shape(w.Extents[:w.Axes]).Elements() }

// At is the offset of element i.
func (w *Layout) At(i int) int {
	offset := 0
	for axis := w.Axes - 1; axis > 0; axis-- {
		offset += i % w.Extents[axis] * w.Strides[axis]
		i /= w.Extents[axis]
	}
	return offset + i*w.Strides[0]
}

// Arguments are a kernel's integers for the walk: axes extents, then as many strides, innermost
// last; surplus axes have extent 1.
func (w *Layout) Arguments(axes int) []tensor.Argument {
	arguments := make([]tensor.Argument, 2*axes)
	for i := range axes {
		extent, stride := 1, 0
		if from := i - (axes - w.Axes); from >= 0 {
			extent, stride = w.Extents[from], w.Strides[from]
		}
		arguments[i], arguments[axes+i] = tensor.Int(extent), tensor.Int(stride)
	}
	return arguments
}
