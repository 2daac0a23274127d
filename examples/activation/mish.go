package main

import (
	_ "embed"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

//go:generate go run ../../cuda/kernels/generate mish.cu

//go:embed mish.ptx
var ptx string

func init() {
	if err := kernels.Add("mish.ptx", ptx); err != nil {
		panic(err)
	}
}

// Mish is y = x tanh(ln(1 + e^x)), elementwise: x [...] -> y [...]. Source: Misra, Mish: a self
// regularized non-monotonic activation function (2019).
type Mish struct{}

// Name implements graph.Op.
func (Mish) Name() string { return "mish" }

// Shape implements graph.Op.
func (Mish) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 1 {
		return nil, errors.Errorf("mish: must have 1 input, got %d", len(in))
	}
	return in[0], nil
}

// Lower implements graph.Op. Each element depends on one input element only, so the host side is
// RowTiles: consecutive launches can then be fused and run a few rows at a time in the cache.
func (Mish) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	host := tensor.RowTiles(n, 1, 1, graph.Pick(l, values[float32], values[float64]))
	l.Emit("mish_fwd", tensor.Threads(n), host, l.Out(), l.In(0), tensor.Int(n))
}

// Gradients implements graph.Differentiable.
func (Mish) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(mishGradient{}, dout, in[0])}
}

// mishGradient is dx = dout dy/dx: dout [...], x [...] -> dx [...].
type mishGradient struct{}

func (mishGradient) Name() string { return "mish gradient" }

func (mishGradient) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[1], nil }

func (mishGradient) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	host := tensor.RowTiles(n, 1, 1, graph.Pick(l, gradients[float32], gradients[float64]))
	l.Emit("mish_bwd", tensor.Threads(n), host, l.Out(), l.In(0), l.In(1), tensor.Int(n))
}

// values computes the elements from lo to hi. Its arguments have the order of the launch's in
// Lower.
func values[T float32 | float64](a *tensor.Args, lo, hi int) {
	y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
	for i := lo; i < hi; i++ {
		y[i] = T(mish(float64(x[i])))
	}
}

// mish returns x t, where t = tanh(ln(1 + e)) is n/(n + 2) with e = e^x and n = e (e + 2). From
// x = 20 on t rounds to 1, so e is clamped there and does not overflow.
func mish(x float64) float64 {
	e := math.Exp(min(x, 20))
	n := e * (e + 2)
	return x * n / (n + 2)
}

// gradients computes dx = dout (t + x (1 - t^2) e/(1 + e)) for the elements from lo to hi.
func gradients[T float32 | float64](a *tensor.Args, lo, hi int) {
	dx, dout, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
	for i := lo; i < hi; i++ {
		dx[i] = T(float64(dout[i]) * slope(float64(x[i])))
	}
}

// slope returns dy/dx of Mish.
func slope(x float64) float64 {
	e := math.Exp(min(x, 20))
	n := e * (e + 2)
	return n/(n+2) + x*4*(n+1)/((n+2)*(n+2))*e/(1+e)
}

// Layer is Mish as a layer of a network.
type Layer struct{}

// Apply implements layers.Layer.
func (Layer) Apply(b *graph.Builder, x *graph.Node) *graph.Node { return b.Apply(Mish{}, x) }
