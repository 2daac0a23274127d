package op

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Tanh is the hyperbolic tangent, elementwise: x [...] -> y [...].
type Tanh struct{ elementwise[Tanh] }

func (Tanh) unary() unary {
	return unary{
		name:       "tanh",
		value:      math.Tanh,
		derivative: func(y float64) float64 { return (1 - y) * (1 + y) },
		fromOutput: true,
		values:     kernel.Tanh,
		gradients:  kernel.TanhGradient,
	}
}

// Sigmoid is the logistic y = 1 / (1 + e^-x), elementwise: x [...] -> y [...].
type Sigmoid struct{ elementwise[Sigmoid] }

func (Sigmoid) unary() unary {
	return unary{
		name:       "sigmoid",
		value:      sigmoid,
		derivative: func(y float64) float64 { return y * (1 - y) },
		fromOutput: true,
		values:     kernel.Sigmoid,
		gradients:  kernel.SigmoidGradient,
	}
}

// Softplus is y = ln(1 + e^x), elementwise, computed as max(x, 0) + ln(1 + e^-|x|):
// x [...] -> y [...].
// Source: Dugas et al., Incorporating second-order functional knowledge for better option pricing
// (2000).
type Softplus struct{ elementwise[Softplus] }

func (Softplus) unary() unary {
	return unary{
		name:       "softplus",
		value:      softplus,
		derivative: func(y float64) float64 { return -math.Expm1(-y) },
		fromOutput: true,
		values:     kernel.Softplus,
		gradients:  kernel.SoftplusGradient,
	}
}

// SiLU is y = x / (1 + e^-x), also called swish, elementwise: x [...] -> y [...].
// Source: Hendrycks and Gimpel, Gaussian error linear units (2016); Ramachandran et al., Searching
// for activation functions (2017).
type SiLU struct{ elementwise[SiLU] }

func (SiLU) unary() unary {
	return unary{
		name:  "silu",
		value: func(x float64) float64 { return x * sigmoid(x) },
		derivative: func(x float64) float64 {
			s := sigmoid(x)
			return s * (1 + x*(1-s))
		},
		values:    kernel.SiLU,
		gradients: kernel.SiLUGradient,
	}
}

// HardSwish is y = x min(max(x/6 + 1/2, 0), 1), elementwise: x [...] -> y [...]. It approximates
// SiLU without an exponential. The derivative at -3 is 0, and at 3 it is 1.
// Source: Howard et al., Searching for MobileNetV3 (2019).
type HardSwish struct{ elementwise[HardSwish] }

func (HardSwish) unary() unary {
	return unary{
		name:  "hard_swish",
		value: func(x float64) float64 { return x * min(max(x/6+0.5, 0), 1) },
		derivative: func(x float64) float64 {
			if math.Abs(x) < 3 {
				return x/3 + 0.5
			}
			return min(max(x, 0), 1)
		},
		values:    kernel.HardSwish,
		gradients: kernel.HardSwishGradient,
	}
}

// GELU is the Gaussian error linear unit, y = x Phi(x) with the normal distribution function Phi,
// elementwise: x [...] -> y [...].
// Source: Hendrycks and Gimpel, Gaussian error linear units (2016).
type GELU struct{ elementwise[GELU] }

func (GELU) unary() unary {
	phi := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	return unary{
		name:       "gelu",
		value:      func(x float64) float64 { return x * phi(x) },
		derivative: func(x float64) float64 { return phi(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) },
		values:     kernel.GELU,
		gradients:  kernel.GELUGradient,
	}
}

// ELU is the exponential linear unit, y = x where x > 0, else Alpha (e^x - 1), elementwise:
// x [...] -> y [...]. Alpha must be positive.
// Source: Clevert et al., Fast and accurate deep network learning by exponential linear units
// (2016).
type ELU struct {
	Alpha float64
}

// Name implements graph.Op.
func (ELU) Name() string { return "elu" }

// Shape implements graph.Op.
func (e ELU) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if !(e.Alpha > 0) || math.IsInf(e.Alpha, 1) {
		return nil, errors.Errorf("alpha must be positive and finite, got %v", e.Alpha)
	}
	return unaryShape(in)
}

// Lower implements graph.Op.
func (e ELU) Lower(l *graph.Lowering) { lowerUnary(l, e.unary()) }

// Gradients implements graph.Differentiable. At 0 the derivative is Alpha.
func (e ELU) Gradients(b *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	return unaryGradients(b, e, in[0], y, dout)
}

func (e ELU) unary() unary {
	return unary{
		name: e.Name(),
		value: func(x float64) float64 {
			if x > 0 {
				return x
			}
			return e.Alpha * math.Expm1(x)
		},
		derivative: func(y float64) float64 {
			if y > 0 {
				return 1
			}
			return y + e.Alpha
		},
		fromOutput: true,
		constants:  []float64{e.Alpha},
		values:     func(y, x []float32) { kernel.ELU(y, x, float32(e.Alpha)) },
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
