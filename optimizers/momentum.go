package optimizers

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Momentum is gradient descent with the heavy ball's momentum (Polyak 1964):
//
//	g     = gradient + WeightDecay*theta
//	v     = Decay*v + rate*g
//	theta = theta - v
//
// In the long run it moves as far as SGD at the rate rate/(1-Decay).
type Momentum struct {
	Decay       float64 // factor of the velocity v in one step, in [0, 1); usually 0.9
	WeightDecay float64 // at least 0
}

// Name implements Optimizer.
func (Momentum) Name() string { return "momentum" }

// Validate implements Optimizer.
func (o Momentum) Validate() error {
	return check(o, belowOne("Decay", o.Decay), nonNegative("WeightDecay", o.WeightDecay))
}

// Update implements Optimizer.
func (o Momentum) Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	return attach(b, o, name, parameter, gradient, rates)
}

func (Momentum) states() []string { return []string{"momentum"} }

func (o Momentum) lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64) {
	return op.UpdateHost(l, n, o, momentum[float32], momentum[float64]), []float64{o.Decay, o.WeightDecay}
}

func momentum[T float32 | float64](o Momentum, a *tensor.Args, lo, hi int) float64 {
	w, dw := operands[T](a, lo, hi)
	return kernel.Momentum(w, dw, tensor.Slice[T](a, 3)[lo:hi], T(o.WeightDecay), T(o.Decay), rateAt[T](a, 4))
}

// Nesterov is gradient descent with the accelerated gradient's momentum (Nesterov 1983; Sutskever,
// Martens, Dahl and Hinton 2013, equations 3 and 4), whose gradient is taken at the point to which
// the velocity leads. Here the parameter is that point, so that forward and backward passes need no
// second copy (Bengio, Boulanger-Lewandowski and Pascanu 2013, equation 7):
//
//	g     = gradient + WeightDecay*theta
//	v     = Decay*v + rate*g
//	theta = theta - (rate*g + Decay*v)
type Nesterov struct {
	Decay       float64 // factor of the velocity v in one step, in [0, 1); usually 0.9
	WeightDecay float64 // at least 0
}

// Name implements Optimizer.
func (Nesterov) Name() string { return "nesterov" }

// Validate implements Optimizer.
func (o Nesterov) Validate() error {
	return check(o, belowOne("Decay", o.Decay), nonNegative("WeightDecay", o.WeightDecay))
}

// Update implements Optimizer.
func (o Nesterov) Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	return attach(b, o, name, parameter, gradient, rates)
}

func (Nesterov) states() []string { return []string{"momentum"} }

func (o Nesterov) lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64) {
	return op.UpdateHost(l, n, o, nesterov[float32], nesterov[float64]), []float64{o.Decay, o.WeightDecay}
}

func nesterov[T float32 | float64](o Nesterov, a *tensor.Args, lo, hi int) float64 {
	w, dw := operands[T](a, lo, hi)
	return kernel.Nesterov(w, dw, tensor.Slice[T](a, 3)[lo:hi], T(o.WeightDecay), T(o.Decay), rateAt[T](a, 4))
}
