package optimizers

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// SGD is stochastic gradient descent (Robbins and Monro 1951):
//
//	g     = gradient + WeightDecay*theta
//	theta = theta - rate*g
//
// It is, bit for bit, SGLD at temperature 0 under the prior that WeightDecay stands for.
type SGD struct {
	WeightDecay float64 // at least 0
}

// Name implements Optimizer.
func (SGD) Name() string { return "sgd" }

// Validate implements Optimizer.
func (o SGD) Validate() error { return check(o, nonNegative("WeightDecay", o.WeightDecay)) }

// Update implements Optimizer.
func (o SGD) Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	return attach(b, o, name, parameter, gradient, rates)
}

func (SGD) states() []string { return nil }

func (o SGD) lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64) {
	return op.UpdateHost(l, n, o, sgd[float32], sgd[float64]), []float64{o.WeightDecay}
}

func sgd[T float32 | float64](o SGD, a *tensor.Args, lo, hi int) float64 {
	w, dw := operands[T](a, lo, hi)
	return kernel.SGD(w, dw, T(o.WeightDecay), rateAt[T](a, 3))
}
