package op

import "math"

// Abs is y = |x|, elementwise: x [...] -> y [...]. Its derivative is taken as 0 at 0. The Laplace
// density uses it.
type Abs struct{ elementwise[absCurve] }

type absCurve struct{}

func (absCurve) curve() curve {
	return curve{
		name:  "abs",
		value: math.Abs,
		slope: func(x float64) float64 {
			if x == 0 {
				return 0
			}
			return math.Copysign(1, x)
		},
	}
}
