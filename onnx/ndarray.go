package onnx

import (
	"math"

	"github.com/pkg/errors"
)

// ndarray is a value that is known while a graph is built: a weight, or a value that a model
// computes from shapes and constants. Integers are exact up to 2^53, which is above every extent
// of a shape.
type ndarray struct {
	shape  []int
	kind   ElementType
	values []float64
}

// maxFolded is the maximum number of elements of a value that is computed while a graph is built.
const maxFolded = 1 << 27

func newArray(kind ElementType, shape []int) (*ndarray, error) {
	n, err := elements(shape)
	if err != nil {
		return nil, err
	}
	if n > maxFolded {
		return nil, errors.Errorf("a constant must have at most %d elements, got shape %v", maxFolded, shape)
	}
	return &ndarray{shape: shape, kind: kind, values: make([]float64, n)}, nil
}

// vectorOf returns integers as an array, as Shape does.
func vectorOf(integers []int) *ndarray {
	a := &ndarray{shape: []int{len(integers)}, kind: Int64, values: make([]float64, len(integers))}
	for i, v := range integers {
		a.values[i] = float64(v)
	}
	return a
}

// integers returns the elements as integers. Those that are too large for a shape, such as the
// largest int64 for "until the end", are limited to maxElements.
func (a *ndarray) integers() []int {
	v := make([]int, len(a.values))
	for i, x := range a.values {
		v[i] = int(max(-maxElements, min(maxElements, x)))
	}
	return v
}

// reshaped returns the values with another shape.
func (a *ndarray) reshaped(shape []int) *ndarray { return &ndarray{shape, a.kind, a.values} }

// take returns the elements at the given indices of an axis, whose extent becomes len(indices).
func (a *ndarray) take(axis int, indices []int) (*ndarray, error) {
	shape := append([]int{}, a.shape...)
	shape[axis] = len(indices)
	y, err := newArray(a.kind, shape)
	if err != nil {
		return nil, err
	}
	outer, inner := product(a.shape[:axis]), product(a.shape[axis+1:])
	for o := range outer {
		for i, from := range indices {
			copy(y.values[(o*len(indices)+i)*inner:][:inner], a.values[(o*a.shape[axis]+from)*inner:][:inner])
		}
	}
	return y, nil
}

// transposed permutes the axes: axis i of the result is axis axes[i] of a.
func (a *ndarray) transposed(axes []int) (*ndarray, error) {
	shape := make([]int, len(axes))
	for i, axis := range axes {
		shape[i] = a.shape[axis]
	}
	y, err := newArray(a.kind, shape)
	if err != nil {
		return nil, err
	}
	strides := stridesOf(a.shape)
	index := make([]int, len(axes))
	for i := range y.values {
		from := 0
		for k, axis := range axes {
			from += index[k] * strides[axis]
		}
		y.values[i] = a.values[from]
		advance(index, shape)
	}
	return y, nil
}

// broadcast applies a function of two numbers with NumPy's broadcasting.
func broadcast(a, b *ndarray, kind ElementType, f func(x, y float64) float64) (*ndarray, error) {
	shape, err := broadcastShape(a.shape, b.shape)
	if err != nil {
		return nil, err
	}
	y, err := newArray(kind, shape)
	if err != nil {
		return nil, err
	}
	index := make([]int, len(shape))
	ofA, ofB := broadcastStrides(a.shape, shape), broadcastStrides(b.shape, shape)
	for i := range y.values {
		atA, atB := 0, 0
		for axis, v := range index {
			atA, atB = atA+v*ofA[axis], atB+v*ofB[axis]
		}
		y.values[i] = f(a.values[atA], b.values[atB])
		advance(index, shape)
	}
	return y, nil
}

func broadcastShape(a, b []int) ([]int, error) {
	shape := make([]int, max(len(a), len(b)))
	for i := range shape {
		x, y := extentOf(a, i-len(shape)), extentOf(b, i-len(shape))
		switch {
		case x == y || y == 1:
			shape[i] = x
		case x == 1:
			shape[i] = y
		default:
			return nil, errors.Errorf("shapes %v and %v do not broadcast", a, b)
		}
	}
	return shape, nil
}

// extentOf returns the extent of an axis counted from the end, -1 being the last; axes that the
// shape does not have count as 1.
func extentOf(shape []int, axis int) int {
	if axis += len(shape); axis < 0 {
		return 1
	}
	return shape[axis]
}

// broadcastStrides returns the strides of an operand along the axes of the result.
func broadcastStrides(shape, to []int) []int {
	own, strides := stridesOf(shape), make([]int, len(to))
	for i := range shape {
		if shape[i] != 1 {
			strides[len(to)-len(shape)+i] = own[i]
		}
	}
	return strides
}

func stridesOf(shape []int) []int {
	strides, n := make([]int, len(shape)), 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= shape[i]
	}
	return strides
}

// advance increments an index in row-major order.
func advance(index, shape []int) {
	for axis := len(index) - 1; axis >= 0; axis-- {
		if index[axis]++; index[axis] < shape[axis] {
			return
		}
		index[axis] = 0
	}
}

func product(extents []int) int {
	n := 1
	for _, extent := range extents {
		n *= extent
	}
	return n
}

// converted returns the values as another type: integers are truncated towards zero, and as a bool
// every number except 0 becomes 1.
func (a *ndarray) converted(kind ElementType) *ndarray {
	y := &ndarray{a.shape, kind, append([]float64{}, a.values...)}
	for i, v := range y.values {
		switch {
		case kind == Bool:
			y.values[i] = boolean(v != 0)
		case kind == Float32:
			y.values[i] = float64(float32(v))
		case !kind.Floating():
			y.values[i] = math.Trunc(v)
		}
	}
	return y
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
