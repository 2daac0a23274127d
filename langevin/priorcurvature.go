package langevin

import "math"

// curvature returns the derivative by theta of the prior's part of the gradient of U/N, in the
// notation of priorTerm:
//
//	flat, Gaussian  strength
//	Laplace         0; the jump at theta = 0 is left out
//	Student-t       strength (spread - theta^2)/(spread + theta^2)^2
//	scale mixture   strength + (narrow - strength) p (1 - 2 bend theta^2 (1 - p))    p = q/(1 + q)
func (s priorTerm[T]) curvature(theta float64) float64 {
	strength, square := float64(s.strength), theta*theta
	switch s.family {
	case LaplacePrior:
		return 0
	case StudentTPrior:
		spread := float64(s.spread)
		return strength * (spread - square) / ((spread + square) * (spread + square))
	case ScaleMixturePrior:
		p := 1 / (1 + math.Exp(s.bend*square-s.odds))
		return strength + (s.narrow-strength)*p*(1-2*s.bend*square*(1-p))
	default:
		return strength
	}
}
