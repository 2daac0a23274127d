package diagnostics

import (
	"math"

	"github.com/pkg/errors"
)

// KineticTemperature is p' M^-1 p / d for d momenta p with the diagonal mass matrix M, given as d
// inverses, one for all, or none for masses of 1. In equilibrium, p ~ N(0, T M), it is T/d times a
// chi-square of d degrees of freedom: its mean is T, its variance 2 T^2 / d. A velocity distributed
// as N(0, h T), as in SGHMC, has the inverse mass 1/h. It is an error if momenta are missing or not
// finite, or inverse masses are not positive or of another number.
func KineticTemperature[T float32 | float64](momenta []T, inverseMasses ...float64) (float64, error) {
	if len(momenta) == 0 || len(inverseMasses) > 1 && len(inverseMasses) != len(momenta) {
		return 0, errors.Errorf("diagnostics: kinetic temperature: %d momenta and %d inverse masses, wants at least 1 momentum, and no mass, 1 or one for each",
			len(momenta), len(inverseMasses))
	}
	for i, inverse := range inverseMasses {
		if !(inverse > 0 && inverse < math.Inf(1)) {
			return 0, errors.Errorf("diagnostics: kinetic temperature: inverse mass %d is %v, wants a positive number", i, inverse)
		}
	}
	inverse, sum := 1.0, 0.0
	for i, p := range momenta {
		if i < len(inverseMasses) {
			inverse = inverseMasses[i]
		}
		sum += float64(p) * float64(p) * inverse
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return 0, errors.Errorf("diagnostics: kinetic temperature: twice the kinetic energy is %v, wants finite momenta", sum)
	}
	return sum / float64(len(momenta)), nil
}

// KineticScore is the distance of a kinetic temperature, measured from that many independent
// momenta, from the target T in standard deviations: (measured - T) / (T sqrt(2/momenta)). It is
// nearly standard normal for more than about 30 momenta.
func KineticScore(measured, target float64, momenta int) float64 {
	return (measured - target) / (target * math.Sqrt(2/float64(momenta)))
}
