package strided

import "github.com/pollen-ml/pollen/tensor"

// MaxAxes is the maximum number of axes of a Layout.
const MaxAxes = 6

// Layout maps i, a row-major index over some axes, to an offset in a tensor's memory, as CuTe's
// Layout does: the extents are its shape.
type Layout struct {
	Axes             int
	Extents, Strides [MaxAxes]int
}

// Add appends an axis as the innermost one.
func (w *Layout) Add(extent, stride int) {
	w.Extents[w.Axes], w.Strides[w.Axes] = extent, stride
	w.Axes++
}

// Count returns the number of elements.
func (w *Layout) Count() int { return tensor.Shape(w.Extents[:w.Axes]).Elements() }

// At returns the offset of element i.
func (w *Layout) At(i int) int {
	offset := 0
	for axis := w.Axes - 1; axis > 0; axis-- {
		offset += i % w.Extents[axis] * w.Strides[axis]
		i /= w.Extents[axis]
	}
	return offset + i*w.Strides[0]
}

// Arguments returns the integers of the Layout for a kernel with the given number of axes: all
// extents, then all strides, innermost last. Surplus axes, the outermost, have extent 1.
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
