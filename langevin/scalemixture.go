package langevin

import "math"

// ScaleMixture is the prior of Blundell et al. 2015, equation 7: weight N(0, wide^2) + (1 - weight)
// N(0, narrow^2).
func ScaleMixture(weight, wide, narrow float64) Prior {
	return Prior{Kind: ScaleMixturePrior, Scale: wide, Narrow: narrow, Weight: weight}
}

// isScaleMixture reports whether the attributes of a scale mixture are valid.
func (p Prior) isScaleMixture() bool {
	return p.Weight > 0 && p.Weight < 1 && p.Narrow > 0 && p.Narrow < p.Scale
}

// logScaleMixture returns the logarithm of the mixture's density: the weighted density of the wide
// Gaussian times 1 + q, with q as in priorTerm.
func (p Prior) logScaleMixture(theta float64) float64 {
	s := p.term(1)
	return math.Log(p.Weight) + Gaussian(p.Scale).LogDensity(theta) + logOnePlusExp(s.odds-s.bend*theta*theta)
}

// scaleMixtureEnergy is Prior.energy for scale mixtures.
func (p Prior) scaleMixtureEnergy() func(theta float64) float64 {
	s := p.term(1)
	top := logOnePlusExp(s.odds)
	return func(theta float64) float64 {
		square := theta * theta
		return s.strength*square/2 + (top - logOnePlusExp(s.odds-s.bend*square))
	}
}

// logOnePlusExp returns ln(1 + e^x) without overflow.
func logOnePlusExp(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// fillScaleMixture is priorTerm.fill for scale mixtures.
func (s priorTerm[T]) fillScaleMixture(g, w, dw []T) {
	strength := float64(s.strength)
	for i, theta := range w {
		x := float64(theta)
		q := math.Exp(s.odds - float64(s.bend*x*x))
		g[i] = dw[i] + T(x*(strength+float64(s.narrow*q))/(1+q))
	}
}
