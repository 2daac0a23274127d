package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// Slice takes Count elements along an axis, from Start on, Step apart: x [...] -> y with extent
// Count on the axis, y[... i ...] = x[... Start+i*Step ...].
type Slice struct {
	Axis, Start, Step, Count int
}

// Name implements graph.Op.
func (Slice) Name() string { return "slice" }

// Shape implements graph.Op.
func (s Slice) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkAxis(in, s.Axis); err != nil {
		return nil, err
	}
	// Divide, do not multiply: attributes may be as large as an int.
	last := in[0][s.Axis] - 1
	if s.Start < 0 || s.Start > last || s.Step < 1 || s.Count < 1 || s.Count > 1 && (last-s.Start)/(s.Count-1) < s.Step {
		return nil, errors.Errorf("at least one element must be taken, all within axis %d of shape %v, got %d from %d on, %d apart",
			s.Axis, in[0], s.Count, s.Start, s.Step)
	}
	y := append(tensor.Shape{}, in[0]...)
	y[s.Axis] = s.Count
	return y, nil
}

// Lower implements graph.Op.
func (s Slice) Lower(l *graph.Lowering) {
	// For a copy, the axes before the sliced one are one axis, and the axes after it another.
	var w strided.Layout
	x := l.Shapes[0]
	inner := tensor.Shape(x[s.Axis+1:]).Elements()
	w.Add(tensor.Shape(x[:s.Axis]).Elements(), x[s.Axis]*inner)
	w.Add(s.Count, s.Step*inner)
	w.Add(inner, 1)
	lowerStrided(l, w, s.Start*inner)
}

// Gradients implements graph.Differentiable.
func (s Slice) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(Unslice{Slice: s, Extent: graph.ShapeOf(in[0])[s.Axis]}, dout)}
}

// Unslice puts its input where Slice takes it from, among zeros: x [...] -> y with extent Extent on
// the axis, such that the Slice of y is x. It is the gradient of Slice.
type Unslice struct {
	Slice
	Extent int
}

// Name implements graph.Op.
func (Unslice) Name() string { return "unslice" }

// Shape implements graph.Op.
func (u Unslice) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkAxis(in, u.Axis); err != nil {
		return nil, err
	}
	y := append(tensor.Shape{}, in[0]...)
	y[u.Axis] = u.Extent
	taken, err := u.Slice.Shape([]tensor.Shape{y})
	if err != nil {
		return nil, err
	}
	if !taken.Equal(in[0]) {
		return nil, errors.Errorf("input must have shape %v, which Slice takes of %v, got %v", taken, y, in[0])
	}
	return y, nil
}

// Lower implements graph.Op.
func (u Unslice) Lower(l *graph.Lowering) {
	n, inner := l.Shape.Elements(), tensor.Shape(l.Shape[u.Axis+1:]).Elements()
	lines := n / inner
	run := graph.Pick(l, unslice[float32](u, inner), unslice[float64](u, inner))
	l.Emit("unslice_fwd", tensor.Threads(n), tensor.Rows(lines, inner, run), l.Out(), l.In(0),
		tensor.Int(n), tensor.Int(u.Extent), tensor.Int(inner), tensor.Int(u.Start), tensor.Int(u.Step), tensor.Int(u.Count))
}

// unslice fills lines of y, the inner elements at one position of the axis.
func unslice[T float32 | float64](u Unslice, inner int) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for line := lo; line < hi; line++ {
			to := y[line*inner : (line+1)*inner]
			outer, at := line/u.Extent, line%u.Extent-u.Start
			if at < 0 || at%u.Step != 0 || at/u.Step >= u.Count {
				clear(to)
				continue
			}
			copy(to, x[(outer*u.Count+at/u.Step)*inner:])
		}
	}
}

// Gradients implements graph.Differentiable.
func (u Unslice) Gradients(b *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(u.Slice, dout)}
}
