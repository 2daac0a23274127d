package op

import (
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/mathext"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Exp is y = e^x, elementwise: x [...] -> y [...].
type Exp struct{ elementwise[Exp] }

func (Exp) unary() unary {
	return unary{
		name:       "exp",
		value:      math.Exp,
		derivative: func(y float64) float64 { return y },
		fromOutput: true,
	}
}

// Log is y = ln x, elementwise: x [...] -> y [...]; -Inf at 0, NaN below.
type Log struct{ elementwise[Log] }

func (Log) unary() unary {
	return unary{
		name:       "log",
		value:      math.Log,
		derivative: func(x float64) float64 { return 1 / x },
		values:     kernel.Log,
		gradients:  kernel.Divide[float32],
	}
}

// Sqrt is the square root, elementwise: x [...] -> y [...]. It is NaN below 0, and its gradient is
// infinite at 0.
type Sqrt struct{ elementwise[Sqrt] }

func (Sqrt) unary() unary {
	return unary{
		name:       "sqrt",
		value:      math.Sqrt,
		derivative: func(y float64) float64 { return 1 / (2 * y) },
		fromOutput: true,
	}
}

// Squared is y = x^2, elementwise: x [...] -> y [...].
type Squared struct{ elementwise[Squared] }

func (Squared) unary() unary {
	return unary{
		name:       "squared",
		value:      func(x float64) float64 { return x * x },
		derivative: func(x float64) float64 { return 2 * x },
		values:     func(y, x []float32) { kernel.Multiply(y, x, x) },
		gradients: func(dx, dout, x []float32) {
			kernel.Add(dx, x, x)
			kernel.Multiply(dx, dx, dout)
		},
	}
}

// Lgamma is y = ln |Gamma(x)|, elementwise: x [...] -> y [...]. It is +Inf at 0 and the negative
// integers. Its derivative is the digamma function.
type Lgamma struct{ elementwise[Lgamma] }

func (Lgamma) unary() unary {
	return unary{
		name: "lgamma",
		value: func(x float64) float64 {
			y, _ := math.Lgamma(x)
			return y
		},
		derivative: mathext.Digamma,
	}
}

// Negate is y = -x, elementwise: x [...] -> y [...].
type Negate struct{ elementwise[Negate] }

func (Negate) unary() unary {
	return unary{
		name:  "negate",
		value: func(x float64) float64 { return -x },
	}
}

// Gradients implements graph.Differentiable.
func (n Negate) Gradients(b *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(n, dout)}
}

// Scale is y = Factor x + Offset, elementwise: x [...] -> y [...]. Both must be finite, and Factor
// must not be 0.
type Scale struct {
	Factor, Offset float64
}

// Name implements graph.Op.
func (Scale) Name() string { return "scale" }

// Shape implements graph.Op.
func (s Scale) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if s.Factor == 0 || s.Factor-s.Factor != 0 || s.Offset-s.Offset != 0 {
		return nil, errors.Errorf("factor and offset must be finite and the factor not 0, got %v and %v", s.Factor, s.Offset)
	}
	return unaryShape(in)
}

// Lower implements graph.Op.
func (s Scale) Lower(l *graph.Lowering) { lowerUnary(l, s.unary()) }

// Gradients implements graph.Differentiable.
func (s Scale) Gradients(b *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(Scale{Factor: s.Factor}, dout)}
}

func (s Scale) unary() unary {
	return unary{
		name:      s.Name(),
		value:     func(x float64) float64 { return float64(s.Factor*x) + s.Offset },
		values:    s.values(),
		constants: []float64{s.Factor, s.Offset},
	}
}

// values returns a faster function with the results of value. If the numbers are float32 and only
// one of the two operations rounds, it rounds to float32 as to float64 and then to float32. Only a
// negative result that underflows is 0 instead of -0. Otherwise it computes in float64.
func (s Scale) values() func(y, x []float32) {
	exact := func(v float64) bool { return float64(float32(v)) == v }
	if !exact(s.Factor) || !exact(s.Offset) || s.Factor != 1 && s.Offset != 0 {
		affine := []kernel.Affine{{Scale: s.Factor, Shift: s.Offset}}
		return func(y, x []float32) { kernel.WideAffinePlanes(y, x, affine) }
	}
	factors, offsets := slices.Repeat([]float32{float32(s.Factor)}, cacheBlock), slices.Repeat([]float32{float32(s.Offset)}, cacheBlock)
	return func(y, x []float32) {
		inCacheBlocks(0, len(y), func(lo, hi int) {
			kernel.Multiply(y[lo:hi], x[lo:hi], factors[:hi-lo])
			kernel.Add(y[lo:hi], y[lo:hi], offsets[:hi-lo])
		})
	}
}
