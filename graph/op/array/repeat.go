package array

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// Repeat repeats each element Times times along an axis: x [...] -> y with Times the extent on the
// axis, y[... i ...] = x[... i/Times ...]. Nearest-neighbour upsampling is a Repeat along each
// side. Source: NumPy reference, numpy.repeat.
type Repeat struct {
	Axis, Times int
}

// Name implements graph.Op.
func (Repeat) Name() string { return "repeat" }

// Shape implements graph.Op.
func (r Repeat) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkInputs(in, 1); err != nil {
		return nil, err
	}
	if r.Axis < 0 || r.Axis >= len(in[0]) || r.Times < 1 {
		return nil, errors.Errorf("times must be at least 1 and axis one of an input of shape %v, got %d and %d", in[0], r.Times, r.Axis)
	}
	y := append(tensor.Shape{}, in[0]...)
	if r.Times > math.MaxInt/y[r.Axis] {
		return nil, errors.Errorf("times must be at most %d for axis %d of an input of shape %v, got %d", math.MaxInt/y[r.Axis], r.Axis, in[0], r.Times)
	}
	y[r.Axis] *= r.Times
	return y, nil
}

// Lower implements graph.Op.
func (r Repeat) Lower(l *graph.Lowering) {
	var w strided.Layout
	x := l.Shapes[0]
	inner := tensor.Shape(x[r.Axis+1:]).Elements()
	w.Add(tensor.Shape(x[:r.Axis+1]).Elements(), inner)
	w.Add(r.Times, 0)
	w.Add(inner, 1)
	lowerStrided(l, w, 0)
}

// Gradients implements graph.Differentiable: the sum over the repetitions.
func (r Repeat) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	x := graph.ShapeOf(in[0])
	outer, inner := tensor.Shape(x[:r.Axis+1]).Elements(), tensor.Shape(x[r.Axis+1:]).Elements()
	parts := b.Apply(op.ViewAs(outer, r.Times, inner), dout)
	return []*graph.Node{b.Apply(op.ViewAs(x...), b.Apply(op.Sum{Axes: op.AxesOf(1)}, parts))}
}
