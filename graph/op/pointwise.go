package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// curve is a function of one number and its derivative, both computed in float64. The derivative is a function of y where that is possible,
// so that x's memory is free once y is there.
type curve struct {
	name      string // of the op, and of the kernels name_fwd and name_bwd
	value     func(x float64) float64
	slope     func(v float64) float64 // of y when ofOutput, else of x
	ofOutput  bool
	constants []float64 // the kernels' further arguments
}

// pointwise is an op that applies a curve to each element: x [...] -> y of the same shape.
type pointwise interface {
	graph.Op
	curve() curve
}

// elementwise makes an op of a curve without attributes; it is embedded in the op.
type elementwise[C interface{ curve() curve }] struct{}

func (elementwise[C]) curve() curve {
	var c C
	return c.curve()
}

// Name implements graph.Op.
func (e elementwise[C]) Name() string { return e.curve().name }

// Shape implements graph.Op.
func (elementwise[C]) Shape(in []tensor.Shape) (tensor.Shape, error) { return pointwiseShape(in) }

// Lower implements graph.Op.
func (e elementwise[C]) Lower(l *graph.Lowering) { lowerPointwise(l, e.curve()) }

// Gradients implements graph.Differentiable.
func (e elementwise[C]) Gradients(b *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	return pointwiseGradients(b, e, in[0], y, dout)
}

func pointwiseShape(in []tensor.Shape) (tensor.Shape, error) {
	if err := wantRanks(in, -1); err != nil {
		return nil, err
	}
	return in[0], nil
}

func (c curve) arguments(l *graph.Lowering, buffers ...tensor.Argument) []tensor.Argument {
	arguments := append(buffers, tensor.Int(l.Shape.Elements()))
	for _, v := range c.constants {
		arguments = append(arguments, tensor.Real(l.DType, v))
	}
	return arguments
}

func lowerPointwise(l *graph.Lowering, c curve) {
	n := l.Shape.Elements()
	run := graph.Pick(l, curveValues[float32], curveValues[float64])(c.value)
	l.Emit(c.name+"_fwd", n, tensor.Elementwise(n, run), c.arguments(l, l.Out(), l.In(0))...)
}

func curveValues[T float32 | float64](value func(x float64) float64) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x := tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi]
		for i, v := range x {
			y[i] = T(value(float64(v)))
		}
	}
}

func pointwiseGradients(b *graph.Builder, op pointwise, x, y, dout *graph.Node) []*graph.Node {
	from := x
	if op.curve().ofOutput {
		from = y
	}
	return []*graph.Node{b.Apply(pointwiseBackward{op}, dout, from)}
}

// pointwiseBackward is dx = dout dy/dx: dout [...], y or x [...] -> dx [...].
type pointwiseBackward struct{ op pointwise }

func (g pointwiseBackward) Name() string { return g.op.Name() + " gradient" }

func (pointwiseBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := wantRanks(in, -1, -1); err != nil {
		return nil, err
	}
	return in[0], wantEqual(in[0], in[1])
}

func (g pointwiseBackward) Lower(l *graph.Lowering) {
	n, c := l.Shape.Elements(), g.op.curve()
	run := graph.Pick(l, curveGradient[float32], curveGradient[float64])(c.slope)
	l.Emit(c.name+"_bwd", n, tensor.Elementwise(n, run), c.arguments(l, l.Out(), l.In(0), l.In(1))...)
}

func curveGradient[T float32 | float64](slope func(v float64) float64) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, from := tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi]
		for i, v := range from {
			dx[i] = T(float64(dout[i]) * slope(float64(v)))
		}
	}
}
