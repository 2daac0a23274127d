package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// Transpose permutes axes: x [...] -> y [...], axis i of y being axis Axes[i] of x; see
// TransposeBy. It copies. Source: NumPy reference, numpy.transpose.
type Transpose struct {
	Axes [maxAxes]int // the first n must be a permutation of 0 ... n-1, n being the rank of x
}

// TransposeBy returns the Transpose by a permutation of the axes.
func TransposeBy(axes ...int) Transpose {
	var t Transpose
	for i := range t.Axes {
		t.Axes[i] = i
	}
	copy(t.Axes[:], axes)
	if len(axes) > maxAxes {
		t.Axes[0] = -1 // refused by Shape
	}
	return t
}

// Name implements graph.Op.
func (Transpose) Name() string { return "transpose" }

// Shape implements graph.Op.
func (t Transpose) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkInputs(in, 1); err != nil {
		return nil, err
	}
	y, seen := make(tensor.Shape, len(in[0])), make([]bool, len(in[0]))
	for i, axis := range t.Axes[:len(y)] {
		if axis < 0 || axis >= len(y) || seen[axis] {
			return nil, errors.Errorf("axes must be a permutation of those of an input of shape %v, got %v", in[0], t.Axes[:len(y)])
		}
		seen[axis], y[i] = true, in[0][axis]
	}
	return y, nil
}

// Lower implements graph.Op.
func (t Transpose) Lower(l *graph.Lowering) {
	// The stride of an axis of x is the number of elements after it.
	var w strided.Layout
	x := l.Shapes[0]
	for i, extent := range l.Shape {
		w.Add(extent, tensor.Shape(x[t.Axes[i]+1:]).Elements())
	}
	lowerStrided(l, w, 0)
}

// Gradients implements graph.Differentiable: the inverse permutation.
func (t Transpose) Gradients(b *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	inverse := TransposeBy()
	for i, axis := range t.Axes[:len(graph.ShapeOf(dout))] {
		inverse.Axes[axis] = i
	}
	return []*graph.Node{b.Apply(inverse, dout)}
}

// lowerStrided emits a copy of the elements of the input at the offsets of a layout, plus offset.
func lowerStrided(l *graph.Lowering, w strided.Layout, offset int) {
	w = w.Merged()
	n := l.Shape.Elements()
	run := graph.Pick(l, stridedCopy[float32](w, offset), stridedCopy[float64](w, offset))
	arguments := append([]tensor.Argument{l.Out(), l.In(0), tensor.Int(n), tensor.Int(offset)}, w.Arguments(maxAxes)...)
	l.Emit("strided_fwd", tensor.Threads(n), tensor.Rows(n, 1, run), arguments...)
}

// stridedCopy copies elements lo to hi of the output.
func stridedCopy[T float32 | float64](w strided.Layout, offset int) func(a *tensor.Args, lo, hi int) {
	stride := w.Strides[w.Axes-1]
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)[offset:]
		w.Lines(lo, hi, func(i, at, n int) {
			if stride == 1 {
				copy(y[i:i+n], x[at:])
				return
			}
			for end := i + n; i < end; i++ {
				y[i] = x[at]
				at += stride
			}
		})
	}
}
