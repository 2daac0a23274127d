package op

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// StudentTConstant is the logarithm of the normalising constant of Student's t-density with x
// degrees of freedom, elementwise:
//
//	y = ln Gamma((x+1)/2) - ln Gamma(x/2) - 1/2 ln(pi x)
//
// x [...] -> y [...]. From x = 50 on, where the terms cancel, it is computed by an asymptotic
// series in 1/x about the constant of the normal density, -1/2 ln(2 pi). Source: Stirling's series
// of the ratio of two gamma functions, DLMF 5.11.8.
type StudentTConstant struct{ elementwise[StudentTConstant] }

// asymptoticFrom is where the series becomes exact to rounding: the first omitted term is below
// 1e-15.
const asymptoticFrom = 50

func (StudentTConstant) unary() unary {
	return unary{
		name:  "student_t_constant",
		value: StudentTConstant{}.Of,
		derivative: func(x float64) float64 {
			if x >= asymptoticFrom {
				r := 1 / (x * x)
				return (1.0/4 - (1.0/8-(1.0/4-17.0/16*r)*r)*r) * r
			}
			return 0.5 * (mathext.Digamma((x+1)/2) - mathext.Digamma(x/2) - 1/x)
		},
	}
}

// Of returns y for one x.
func (StudentTConstant) Of(x float64) float64 {
	if x >= asymptoticFrom {
		r := 1 / (x * x)
		return -0.5*math.Log(2*math.Pi) - (1.0/4-(1.0/24-(1.0/20-17.0/112*r)*r)*r)/x
	}
	upper, _ := math.Lgamma((x + 1) / 2)
	lower, _ := math.Lgamma(x / 2)
	return upper - lower - 0.5*math.Log(math.Pi*x)
}
