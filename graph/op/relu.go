package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// ReLU is y = max(0, x), elementwise: x -> y of the same shape. Its gradient, taken as 0 at 0,
// needs only y, so that x's memory is free once y is there.
type ReLU struct{}

// Name implements graph.Op.
func (ReLU) Name() string { return "relu" }

// Shape implements graph.Op.
func (ReLU) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := wantRanks(in, -1); err != nil {
		return nil, err
	}
	return in[0], nil
}

// Lower implements graph.Op.
func (ReLU) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	run := graph.Pick(l, relu[float32], relu[float64])
	l.Emit("relu_fwd", tensor.Fours(n), tensor.Strips(n, 1, run), l.Out(), l.In(0), tensor.Int(n))
}

func relu[T float32 | float64](a *tensor.Args, lo, hi int) {
	y, x := tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi]
	kernel.Raise(y, x, 0)
}

// Gradients implements graph.Differentiable.
func (ReLU) Gradients(b *graph.Builder, _ []*graph.Node, output, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(reluBackward{}, dout, output)}
}

// reluBackward is dx = dout where y > 0, else 0.
type reluBackward struct{}

func (reluBackward) Name() string { return "relu gradient" }

func (reluBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := wantRanks(in, -1, -1); err != nil {
		return nil, err
	}
	return in[0], wantEqual(in[0], in[1])
}

func (reluBackward) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	run := graph.Pick(l, reluGradient(kernel.PassAbove32), reluGradient(kernel.PassAbove64))
	l.Emit("relu_bwd", tensor.Fours(n), tensor.Strips(n, 1, run), l.Out(), l.In(0), l.In(1), tensor.Int(n))
}

func reluGradient[T float32 | float64](pass func(dx, dout, y []T, bound T)) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		pass(tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi], 0)
	}
}
