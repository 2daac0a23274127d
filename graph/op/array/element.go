package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Element is one element of a tensor, by its index in row-major order: x [...] -> a scalar. It
// records the trace of a weight, and is a coordinate of a vector in the formula of a density.
type Element struct {
	Index int
}

// Name implements graph.Op.
func (Element) Name() string { return "element" }

// Shape implements graph.Op.
func (e Element) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkInputs(in, 1); err != nil {
		return nil, err
	}
	if e.Index < 0 || e.Index >= in[0].Elements() {
		return nil, errors.Errorf("index must be 0 to %d, got %d", in[0].Elements()-1, e.Index)
	}
	return tensor.Shape{}, nil
}

// Lower implements graph.Op.
func (e Element) Lower(l *graph.Lowering) {
	run := graph.Pick(l, element[float32](e.Index), element[float64](e.Index))
	l.Emit("element_fwd", tensor.Threads(1), tensor.Single(run), l.Out(), l.In(0), tensor.Int(e.Index))
}

// element copies one element.
func element[T float32 | float64](index int) func(a *tensor.Args) {
	return func(a *tensor.Args) { tensor.Slice[T](a, 0)[0] = tensor.Slice[T](a, 1)[index] }
}

// Gradients implements graph.Differentiable: dout at the index, among zeros.
func (e Element) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	x := graph.ShapeOf(in[0])
	place := Unslice{Slice: Slice{Start: e.Index, Step: 1, Count: 1}, Extent: x.Elements()}
	return []*graph.Node{b.Apply(op.ViewAs(x...), b.Apply(place, b.Apply(op.ViewAs(1), dout)))}
}
