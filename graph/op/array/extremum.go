package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Extremum is the elementwise maximum of a and b, or with Minimum their minimum: a [...], b [...]
// -> y, all of one shape. Where both are equal, or one is NaN, y is a, and the gradient goes to a.
// It selects and does not compute: an infinity that is not selected has no effect on y.
type Extremum struct {
	Minimum bool
}

// Name implements graph.Op.
func (c Extremum) Name() string {
	if c.Minimum {
		return "minimum"
	}
	return "maximum"
}

// Shape implements graph.Op.
func (Extremum) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkInputs(in, 2); err != nil {
		return nil, err
	}
	if !in[0].Equal(in[1]) {
		return nil, errors.Errorf("shapes must be equal, got %v and %v", in[0], in[1])
	}
	return in[0], nil
}

// Lower implements graph.Op.
func (c Extremum) Lower(l *graph.Lowering) {
	n, stem := l.Shape.Elements(), "maximum_fwd"
	if c.Minimum {
		stem = "minimum_fwd"
	}
	run := graph.Pick(l, extremum[float32](c.Minimum), extremum[float64](c.Minimum))
	l.Emit(stem, tensor.Vec4(n), tensor.RowTiles(n, 1, 1, run), l.Out(), l.In(0), l.In(1), tensor.Int(n))
}

// extremum computes elements lo to hi. A comparison with NaN is false, so that a is selected there.
func extremum[T float32 | float64](smaller bool) func(a *tensor.Args, lo, hi int) {
	return func(args *tensor.Args, lo, hi int) {
		y, a, b := tensor.Slice[T](args, 0)[lo:hi], tensor.Slice[T](args, 1)[lo:hi], tensor.Slice[T](args, 2)[lo:hi]
		for i, v := range a {
			if w := b[i]; smaller && w < v || !smaller && w > v {
				v = w
			}
			y[i] = v
		}
	}
}

// Gradients implements graph.Differentiable.
func (c Extremum) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	// b is selected where a < b, or for a minimum where b < a; the rest of the gradient is a's.
	less, more := in[0], in[1]
	if c.Minimum {
		less, more = more, less
	}
	second := b.Apply(op.Multiply{}, b.Apply(op.Compare{Less: true}, less, more), dout)
	return []*graph.Node{b.Apply(op.Subtract{}, dout, second), second}
}
