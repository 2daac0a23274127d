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

// Merged returns the layout of the same offsets with fewer axes: neighbouring axes through which
// the offset advances as through a single one are merged.
func (w *Layout) Merged() Layout {
	var m Layout
	for axis := range w.Axes {
		extent, stride := w.Extents[axis], w.Strides[axis]
		switch last := m.Axes - 1; {
		case extent == 1:
		case last >= 0 && m.Strides[last] == extent*stride:
			m.Extents[last], m.Strides[last] = m.Extents[last]*extent, stride
		default:
			m.Add(extent, stride)
		}
	}
	if m.Axes == 0 {
		m.Add(1, 0)
	}
	return m
}

// Lines calls visit for elements [lo, hi), which must not be empty, a line along the last axis at
// a time: with the first element, its offset, and the number of elements, whose offsets are the
// last axis's stride apart.
func (w *Layout) Lines(lo, hi int, visit func(i, offset, n int)) {
	last := w.Axes - 1
	length := w.Extents[last]
	var index [MaxAxes]int // of the line, on the axes before the last
	line, within, start := lo/length, lo%length, 0
	for axis := last - 1; axis >= 0; axis-- {
		index[axis] = line % w.Extents[axis]
		start += index[axis] * w.Strides[axis]
		line /= w.Extents[axis]
	}
	for {
		n := min(length-within, hi-lo)
		visit(lo, start+within*w.Strides[last], n)
		if lo += n; lo == hi {
			return
		}
		within = 0
		for axis := last - 1; ; axis-- {
			index[axis]++
			start += w.Strides[axis]
			if index[axis] < w.Extents[axis] {
				break
			}
			start -= index[axis] * w.Strides[axis]
			index[axis] = 0
		}
	}
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
