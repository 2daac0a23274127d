package op

import (
	"math"

	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Erf is the error function, y = 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x,
// elementwise: x [...] -> y [...]. The normal distribution function is (1 + erf(x/sqrt 2))/2.
type Erf struct{ elementwise[Erf] }

func (Erf) unary() unary {
	return unary{
		name:       "erf",
		value:      math.Erf,
		values:     kernel.Erf,
		derivative: func(x float64) float64 { return 2 / math.Sqrt(math.Pi) * math.Exp(-x*x) },
	}
}
