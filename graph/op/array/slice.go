package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// Slice takes Count elements along an axis, from Start on, Step apart:
// y[... i ...] = x[... Start+i*Step ...], x [...] -> y with extent Count on the axis.
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
	// Divided, not multiplied: attributes may be as large as an int.
	last := in[0][s.Axis] - 1
	if s.Start < 0 || s.Start > last || s.Step < 1 || s.Count < 1 || s.Count > 1 && (last-s.Start)/(s.Count-1) < s.Step {
		return nil, errors.Errorf("takes %d elements from %d on, %d apart, along axis %d of %v: wants one at least, within the axis",
			s.Count, s.Start, s.Step, s.Axis, in[0])
	}
	y := append(tensor.Shape{}, in[0]...)
	y[s.Axis] = s.Count
	return y, nil
}

// Lower implements graph.Op.
func (s Slice) Lower(l *graph.Lowering) {
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

// Unslice puts its input where Slice would take it from, among zeros:
// x -> y with extent Extent on the axis, such that Slice of y is x. A concatenation is a sum of
// these, each with a Start of its own.
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
		return nil, errors.Errorf("input has shape %v, wants %v, which Slice takes of %v", in[0], taken, y)
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

// unslice fills lines of y: inner elements at one place of the axis.
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
