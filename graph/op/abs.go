package op

import "math"

// Abs is y = |x|, elementwise: x [...] -> y [...]. Its derivative is sign(x), with 0 at 0. The
// density of the Laplace distribution uses it.
type Abs struct{ elementwise[Abs] }

func (Abs) unary() unary {
	return unary{
		name:  "abs",
		value: math.Abs,
		derivative: func(x float64) float64 {
			if x == 0 {
				return 0
			}
			return math.Copysign(1, x)
		},
	}
}
