package op

import "math"

// Softsign is y = x / (1 + |x|), elementwise: x [...] -> y [...]. Its derivative, (1 - |y|)^2,
// needs only y. It saturates like tanh, but polynomially. Source: Bergstra, Desjardins, Lamblin and
// Bengio, Quadratic polynomials learn better image features (2009); Turian, Bergstra and Bengio
// (2009). layers.Softsign uses it.
type Softsign struct{ elementwise[Softsign] }

func (Softsign) unary() unary {
	return unary{
		name:  "softsign",
		value: func(x float64) float64 { return x / (1 + math.Abs(x)) },
		derivative: func(y float64) float64 {
			left := 1 - math.Abs(y)
			return left * left
		},
		fromOutput: true,
	}
}
