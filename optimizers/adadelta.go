package optimizers

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Adadelta has no learning rate: the root mean square of its own steps replaces it, so that a step
// has the parameter's unit (Zeiler 2012, algorithm 1):
//
//	g     = gradient + WeightDecay*theta
//	s     = Decay*s + (1-Decay)*g^2
//	d     = sqrt(u + Epsilon) / sqrt(s + Epsilon) * g
//	u     = Decay*u + (1-Decay)*d^2
//	theta = theta - d
//
// Its Update takes nil for the table of rates.
type Adadelta struct {
	Decay       float64 // memory of both mean squares, in [0, 1); usually 0.95
	Epsilon     float64 // above 0, in units of g^2 and theta^2, the size of the first steps squared; usually 1e-6
	WeightDecay float64 // at least 0
}

// Name implements Optimizer.
func (Adadelta) Name() string { return "adadelta" }

// Validate implements Optimizer.
func (o Adadelta) Validate() error {
	return check(o, belowOne("Decay", o.Decay), positive("Epsilon", o.Epsilon), nonNegative("WeightDecay", o.WeightDecay))
}

// Update implements Optimizer.
func (o Adadelta) Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	return attach(b, o, name, parameter, gradient, rates)
}

func (Adadelta) states() []string { return []string{"second moment", "second moment of steps"} }

func (o Adadelta) lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64) {
	return op.UpdateHost(l, n, o, adadelta[float32], adadelta[float64]), []float64{o.Decay, o.Epsilon, o.WeightDecay}
}

func adadelta[T float32 | float64](o Adadelta, a *tensor.Args, lo, hi int) float64 {
	w, dw := operands[T](a, lo, hi)
	squares, steps := tensor.Slice[T](a, 3)[lo:hi], tensor.Slice[T](a, 4)[lo:hi]
	return kernel.Adadelta(w, dw, squares, steps, T(o.WeightDecay), T(o.Decay), T(o.Epsilon))
}
