package optimizers

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// RMSProp divides each parameter's step by the root of a running mean of its squared gradients
// (Tieleman and Hinton 2012, lecture 6.5):
//
//	g     = gradient + WeightDecay*theta
//	s     = Decay*s + (1-Decay)*g^2
//	theta = theta - rate*g / (sqrt(s) + Epsilon)
//
// It is pSGLD at temperature 0, except that s starts at 0 here and at the mean of the first g^2
// there.
type RMSProp struct {
	Decay       float64 // memory of the mean square, in [0, 1); usually 0.9
	Epsilon     float64 // above 0, to keep the quotient finite; usually 1e-8
	WeightDecay float64 // at least 0
}

// Name implements Optimizer.
func (RMSProp) Name() string { return "rmsprop" }

// Validate implements Optimizer.
func (o RMSProp) Validate() error {
	return check(o, belowOne("Decay", o.Decay), positive("Epsilon", o.Epsilon), nonNegative("WeightDecay", o.WeightDecay))
}

// Update implements Optimizer.
func (o RMSProp) Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	return attach(b, o, name, parameter, gradient, rates)
}

func (RMSProp) states() []string { return []string{"second moment"} }

func (o RMSProp) lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64) {
	return op.UpdateHost(l, n, o, rmsprop[float32], rmsprop[float64]), []float64{o.Decay, o.Epsilon, o.WeightDecay}
}

func rmsprop[T float32 | float64](o RMSProp, a *tensor.Args, lo, hi int) float64 {
	w, dw := operands[T](a, lo, hi)
	return kernel.RMSProp(w, dw, tensor.Slice[T](a, 3)[lo:hi], T(o.WeightDecay), T(o.Decay), rateAt[T](a, 4), T(o.Epsilon))
}
