package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// unary is a function of one number and its derivative. Both are computed in float64, and rounded,
// unless there is a faster function for float32. The derivative is a function of y where possible,
// so that the memory of x is free as soon as y is computed.
type unary struct {
	name       string // of the op, and of the kernels name_fwd and name_bwd
	value      func(x float64) float64
	derivative func(v float64) float64 // of y when fromOutput, else of x
	fromOutput bool
	constants  []float64 // further arguments of the kernels

	// Faster functions for float32, or nil: y of x, and dx of dout and v, the argument of
	// derivative. The slices have equal length and do not overlap.
	values    func(y, x []float32)
	gradients func(dx, dout, v []float32)
}

// unaryOp is an op that applies a unary function to each element: x [...] -> y of the same shape.
type unaryOp interface {
	graph.Op
	unary() unary
}

// elementwise implements the other methods of an op O without attributes that has the method unary.
// O embeds it, see softsign.go.
type elementwise[O unaryOp] struct{}

// Name implements graph.Op.
func (elementwise[O]) Name() string {
	var op O
	return op.unary().name
}

// Shape implements graph.Op.
func (elementwise[O]) Shape(in []tensor.Shape) (tensor.Shape, error) { return unaryShape(in) }

// Lower implements graph.Op.
func (elementwise[O]) Lower(l *graph.Lowering) {
	var op O
	lowerUnary(l, op.unary())
}

// Gradients implements graph.Differentiable.
func (elementwise[O]) Gradients(b *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	var op O
	return unaryGradients(b, op, in[0], y, dout)
}

func unaryShape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1); err != nil {
		return nil, err
	}
	return in[0], nil
}

func (c unary) arguments(l *graph.Lowering, buffers ...tensor.Argument) []tensor.Argument {
	arguments := append(buffers, tensor.Int(l.Shape.Elements()))
	for _, v := range c.constants {
		arguments = append(arguments, tensor.Float(l.DType, v))
	}
	return arguments
}

// lowerUnary emits the launch name_fwd. Each element depends only on the same element of x, so that
// it can be fused over row tiles with its neighbours.
func lowerUnary(l *graph.Lowering, c unary) {
	n := l.Shape.Elements()
	run := graph.Pick(l, unaryForward(c.value, c.values), unaryForward[float64](c.value, nil))
	l.Emit(c.name+"_fwd", tensor.Threads(n), tensor.RowTiles(n, 1, 1, run), c.arguments(l, l.Out(), l.In(0))...)
}

// unaryForward returns the loop y = value(x), by values if that is not nil.
func unaryForward[T float32 | float64](value func(x float64) float64, values func(y, x []T)) func(a *tensor.Args, lo, hi int) {
	values = valuesOf(value, values)
	return func(a *tensor.Args, lo, hi int) {
		values(tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi])
	}
}

// valuesOf returns values or, if that is nil, a loop that computes y = value(x).
func valuesOf[T float32 | float64](value func(x float64) float64, values func(y, x []T)) func(y, x []T) {
	if values != nil {
		return values
	}
	return func(y, x []T) {
		for i, v := range x {
			y[i] = T(value(float64(v)))
		}
	}
}

// unaryGradients applies the op's gradient to dout and to y or x, whichever the derivative needs.
func unaryGradients(b *graph.Builder, op unaryOp, x, y, dout *graph.Node) []*graph.Node {
	from := x
	if op.unary().fromOutput {
		from = y
	}
	return []*graph.Node{b.Apply(unaryBackward{op}, dout, from)}
}

// unaryBackward is dx = dout dy/dx, elementwise: dout [...], y or x [...] -> dx [...].
type unaryBackward struct{ op unaryOp }

func (g unaryBackward) Name() string { return g.op.Name() + " gradient" }

func (unaryBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1, -1); err != nil {
		return nil, err
	}
	return in[0], checkEqual(in[0], in[1])
}

func (g unaryBackward) Lower(l *graph.Lowering) {
	n, c := l.Shape.Elements(), g.op.unary()
	run := graph.Pick(l, unaryVJP(c.derivative, c.gradients), unaryVJP[float64](c.derivative, nil))
	l.Emit(c.name+"_bwd", tensor.Threads(n), tensor.RowTiles(n, 1, 1, run), c.arguments(l, l.Out(), l.In(0), l.In(1))...)
}

// unaryVJP returns the loop dx = dout derivative(v), by gradients if that is not nil.
func unaryVJP[T float32 | float64](slope func(v float64) float64, gradients func(dx, dout, v []T)) func(a *tensor.Args, lo, hi int) {
	gradients = vjpOf(slope, gradients)
	return func(a *tensor.Args, lo, hi int) {
		gradients(tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi])
	}
}

// vjpOf returns gradients or, if that is nil, a loop that computes dx = dout slope(v).
func vjpOf[T float32 | float64](slope func(v float64) float64, gradients func(dx, dout, v []T)) func(dx, dout, v []T) {
	if gradients != nil {
		return gradients
	}
	return func(dx, dout, v []T) {
		for i, from := range v {
			dx[i] = T(float64(dout[i]) * slope(float64(from)))
		}
	}
}
