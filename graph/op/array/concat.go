package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Concat joins its inputs along an axis: x1 [... N1 ...], x2 [... N2 ...], ... -> y [... N1+N2+...
// ...]. There must be at least one input. Source: NumPy reference, numpy.concatenate.
type Concat struct{ Axis int }

// Name implements graph.Op.
func (Concat) Name() string { return "concat" }

// Shape implements graph.Op.
func (c Concat) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) == 0 || c.Axis < 0 || c.Axis >= len(in[0]) {
		return nil, errors.Errorf("there must be inputs with an axis %d, got shapes %v", c.Axis, in)
	}
	y := append(tensor.Shape{}, in[0]...)
	for _, shape := range in[1:] {
		if len(shape) != len(y) {
			return nil, errors.Errorf("inputs must have the same number of axes, got shapes %v", in)
		}
		for axis, extent := range shape {
			if axis != c.Axis && extent != y[axis] {
				return nil, errors.Errorf("inputs must have equal extents except on axis %d, got shapes %v", c.Axis, in)
			}
		}
		y[c.Axis] += shape[c.Axis]
	}
	return y, nil
}

// Lower implements graph.Op. A line is the elements of y with one index on the axes before the
// joined one.
func (c Concat) Lower(l *graph.Lowering) {
	lines, total, inner := tensor.Shape(l.Shape[:c.Axis]).Elements(), l.Shape[c.Axis], tensor.Shape(l.Shape[c.Axis+1:]).Elements()
	arguments := []tensor.Argument{l.Out()}
	var calls []tensor.Call
	var ends []int // on the axis, of each input
	at := 0
	for i, shape := range l.Shapes {
		n, count := shape.Elements(), shape[c.Axis]
		calls = append(calls, l.Call("place_fwd", tensor.Threads(n), l.Out(), l.In(i),
			tensor.Int(n), tensor.Int(count*inner), tensor.Int(total*inner), tensor.Int(at*inner)))
		at += count
		arguments, ends = append(arguments, l.In(i)), append(ends, at)
	}
	run := graph.Pick(l, concatLines[float32](ends, inner), concatLines[float64](ends, inner))
	host := tensor.RowTiles(lines, 1, total*inner, run)
	host.RowTile.Owns = func(int, *tensor.Buffer) bool { return true }
	if lines < manyLines { // too few for all threads
		run = graph.Pick(l, concatParts[float32](ends, inner), concatParts[float64](ends, inner))
		host.Phases = tensor.Rows(lines*total, inner, run).Phases
	}
	l.EmitCalls("place_fwd", calls, host, arguments...)
}

// manyLines is the number of lines from which they are not divided.
const manyLines = 64

// concatLines copies the lines [lo, hi) of y from the inputs, which end at ends on the axis.
func concatLines[T float32 | float64](ends []int, inner int) func(a *tensor.Args, lo, hi int) {
	pitch := ends[len(ends)-1] * inner
	return func(a *tensor.Args, lo, hi int) {
		y, start := tensor.Slice[T](a, 0), 0
		for i, end := range ends {
			x, width, at := tensor.Slice[T](a, 1+i), (end-start)*inner, start*inner
			for line := lo; line < hi; line++ {
				if to := line*pitch + at; width == 1 {
					y[to] = x[line]
				} else {
					copy(y[to:to+width], x[line*width:])
				}
			}
			start = end
		}
	}
}

// concatParts copies parts of lines: the rows [lo, hi) of y, of inner elements each.
func concatParts[T float32 | float64](ends []int, inner int) func(a *tensor.Args, lo, hi int) {
	total := ends[len(ends)-1]
	return func(a *tensor.Args, lo, hi int) {
		y := tensor.Slice[T](a, 0)
		for lo < hi {
			line, start := lo/total, 0
			for i, end := range ends {
				if at := lo % total; at < end {
					n := min(end-at, hi-lo)
					copy(y[lo*inner:(lo+n)*inner], tensor.Slice[T](a, 1+i)[(line*(end-start)+at-start)*inner:])
					lo += n
					break
				}
				start = end
			}
		}
	}
}

// Gradients implements graph.Differentiable.
func (c Concat) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	gradients := make([]*graph.Node, len(in))
	at := 0
	for i, x := range in {
		count := graph.ShapeOf(x)[c.Axis]
		gradients[i] = b.Apply(Slice{Axis: c.Axis, Start: at, Step: 1, Count: count}, dout)
		at += count
	}
	return gradients
}
