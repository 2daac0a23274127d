package optimizers

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Adagrad divides each parameter's step by the root of the sum of all its squared gradients (Duchi,
// Hazan and Singer 2011, the diagonal algorithm; Goodfellow, Bengio and Courville 2016, algorithm
// 8.4):
//
//	g     = gradient + WeightDecay*theta
//	s     = s + g^2
//	theta = theta - rate*g / (sqrt(s) + Epsilon)
type Adagrad struct {
	Epsilon     float64 // above 0, to keep the quotient finite; usually 1e-8
	WeightDecay float64 // at least 0
}

// Name implements Optimizer.
func (Adagrad) Name() string { return "adagrad" }

// Validate implements Optimizer.
func (o Adagrad) Validate() error {
	return check(o, positive("Epsilon", o.Epsilon), nonNegative("WeightDecay", o.WeightDecay))
}

// Update implements Optimizer.
func (o Adagrad) Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	return attach(b, o, name, parameter, gradient, rates)
}

func (Adagrad) states() []string { return []string{"sum of squares"} }

func (o Adagrad) lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64) {
	return op.UpdateHost(l, n, o, adagrad[float32], adagrad[float64]), []float64{o.Epsilon, o.WeightDecay}
}

func adagrad[T float32 | float64](o Adagrad, a *tensor.Args, lo, hi int) float64 {
	w, dw := operands[T](a, lo, hi)
	return kernel.Adagrad(w, dw, tensor.Slice[T](a, 3)[lo:hi], T(o.WeightDecay), rateAt[T](a, 4), T(o.Epsilon))
}
