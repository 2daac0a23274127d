package optimizers

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Adam divides a running mean of the gradient by the root of a running mean of its square, both
// corrected for starting at 0 (Kingma and Ba 2015, algorithm 1). At step t = 1, 2, ..., which the
// header counts from 0:
//
//	g     = gradient + WeightDecay*theta
//	m     = Beta1*m + (1-Beta1)*g
//	v     = Beta2*v + (1-Beta2)*g^2
//	theta = theta - rate * m/(1-Beta1^t) / (sqrt(v/(1-Beta2^t)) + Epsilon)
type Adam struct {
	Beta1       float64 // memory of the mean, in [0, 1); usually 0.9
	Beta2       float64 // memory of the mean square, in [0, 1); usually 0.999
	Epsilon     float64 // above 0, to keep the quotient finite; usually 1e-8
	WeightDecay float64 // at least 0
}

// Name implements Optimizer.
func (Adam) Name() string { return "adam" }

// Validate implements Optimizer.
func (o Adam) Validate() error {
	return check(o, belowOne("Beta1", o.Beta1), belowOne("Beta2", o.Beta2), positive("Epsilon", o.Epsilon),
		nonNegative("WeightDecay", o.WeightDecay))
}

// Update implements Optimizer.
func (o Adam) Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	return attach(b, o, name, parameter, gradient, rates)
}

func (Adam) states() []string { return []string{"first moment", "second moment"} }

func (o Adam) lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64) {
	return lowerAdam(l, n, decayed{Adam: o, inGradient: o.WeightDecay})
}

// AdamW is Adam whose weight decay does not pass through the moments (Loshchilov and Hutter 2019,
// algorithm 2, with the schedule's factor as part of the rate):
//
//	g     = gradient
//	m, v  = as Adam
//	theta = theta - rate * (m/(1-Beta1^t) / (sqrt(v/(1-Beta2^t)) + Epsilon) + WeightDecay*theta)
//
// The decay is not part of the gradient: the statistic leaves it out, and it corresponds to no
// prior on theta.
type AdamW struct {
	Beta1       float64 // memory of the mean, in [0, 1); usually 0.9
	Beta2       float64 // memory of the mean square, in [0, 1); usually 0.999
	Epsilon     float64 // above 0, to keep the quotient finite; usually 1e-8
	WeightDecay float64 // at least 0; usually 0.01
}

// Name implements Optimizer.
func (AdamW) Name() string { return "adamw" }

// Validate implements Optimizer.
func (o AdamW) Validate() error {
	return check(o, belowOne("Beta1", o.Beta1), belowOne("Beta2", o.Beta2), positive("Epsilon", o.Epsilon),
		nonNegative("WeightDecay", o.WeightDecay))
}

// Update implements Optimizer.
func (o AdamW) Update(b *graph.Builder, name string, parameter, gradient, rates *graph.Node) *graph.Node {
	return attach(b, o, name, parameter, gradient, rates)
}

func (AdamW) states() []string { return []string{"first moment", "second moment"} }

func (o AdamW) lower(l *graph.Lowering, n int) (tensor.HostKernel, []float64) {
	return lowerAdam(l, n, decayed{Adam: Adam(o), inStep: o.WeightDecay})
}

// decayed is Adam with weight decay in the gradient (Adam), in the step (AdamW), or nowhere.
type decayed struct {
	Adam
	inGradient, inStep float64
	log1, log2         float64 // the betas' logarithms
}

// lowerAdam passes the logarithms of the betas in addition to the hyperparameters. 1 - beta^t is
// -expm1(t log beta), which is computed in float64 from the betas as rounded to the program's float
// type.
func lowerAdam(l *graph.Lowering, n int, o decayed) (tensor.HostKernel, []float64) {
	o.log1, o.log2 = math.Log(o.Beta1), math.Log(o.Beta2)
	if l.DType == tensor.Float32 {
		o.log1, o.log2 = math.Log(float64(float32(o.Beta1))), math.Log(float64(float32(o.Beta2)))
	}
	return op.UpdateHost(l, n, o, adam[float32], adam[float64]),
		[]float64{o.Beta1, o.Beta2, o.log1, o.log2, o.Epsilon, o.WeightDecay}
}

func adam[T float32 | float64](o decayed, a *tensor.Args, lo, hi int) float64 {
	w, dw := operands[T](a, lo, hi)
	means, squares := tensor.Slice[T](a, 3)[lo:hi], tensor.Slice[T](a, 4)[lo:hi]
	t := float64(tensor.Slice[uint64](a, 6)[graph.HeaderStep] + 1)
	return kernel.Adam(w, dw, means, squares, kernel.AdamStep[T]{
		Decay: T(o.inGradient), DecayInStep: T(o.inStep), Beta1: T(o.Beta1), Beta2: T(o.Beta2),
		Correct1: T(-1 / math.Expm1(t*o.log1)), Correct2: T(-1 / math.Expm1(t*o.log2)), Rate: rateAt[T](a, 5), Epsilon: T(o.Epsilon),
	})
}
