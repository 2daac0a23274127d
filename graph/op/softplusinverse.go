package op

import "math"

// SoftplusInverse is y = ln(e^x - 1), elementwise, computed as x + ln(1 - e^-x):
// x [...] -> y [...]. It is -Inf at 0 and NaN below.
type SoftplusInverse struct {
	elementwise[SoftplusInverse]
}

func (SoftplusInverse) unary() unary {
	return unary{
		name:       "softplus_inverse",
		value:      func(x float64) float64 { return x + math.Log(-math.Expm1(-x)) },
		derivative: func(x float64) float64 { return -1 / math.Expm1(-x) },
	}
}
