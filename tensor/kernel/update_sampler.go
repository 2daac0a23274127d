package kernel

import "math"

// The passes of samplers. The noise z is standard normal, float32 for every T. At temperature 0
// either z or scale is 0. The callers in package langevin compute rate and scale from the step
// size.

// Dot returns the sum of x y, in 16 interleaved partial sums.
func Dot[T Float](x, y []T) float64 {
	var s sums[T]
	for i := accelerate(ruleDot, &s, coefficients[T]{}, nil, x, y); i < len(x); i++ {
		s.add(i, T(x[i]*y[i]))
	}
	return s.total()
}

// DecayedGradient computes g = dw + decay w, the gradient with a Gaussian prior, and returns the
// sum of w g.
func DecayedGradient[T Float](g, w, dw []T, decay T) float64 {
	var s sums[T]
	for i := accelerate(ruleDecayedGradient, &s, coefficients[T]{decay}, nil, g, w, dw); i < len(g); i++ {
		g[i] = dw[i] + T(decay*w[i])
		s.add(i, T(w[i]*g[i]))
	}
	return s.total()
}

// LaplaceGradient computes g = dw + strength sign(w), where sign(0) = 0, the gradient with a
// Laplace prior, and returns the sum of w g. strength must not be negative.
func LaplaceGradient[T Float](g, w, dw []T, strength T) float64 {
	var s sums[T]
	c := coefficients[T]{strength, T(math.Copysign(0, -1))} // -0 is the mask of the sign bit
	for i := accelerate(ruleLaplaceGradient, &s, c, nil, g, w, dw); i < len(g); i++ {
		slope := T(0)
		if w[i] != 0 {
			slope = T(math.Copysign(float64(strength), float64(w[i])))
		}
		g[i] = dw[i] + slope
		s.add(i, T(w[i]*g[i]))
	}
	return s.total()
}

// StudentGradient computes g = dw + strength w/(spread + w^2), the gradient with a Student-t prior,
// and returns the sum of w g.
func StudentGradient[T Float](g, w, dw []T, strength, spread T) float64 {
	var s sums[T]
	for i := accelerate(ruleStudentGradient, &s, coefficients[T]{strength, spread}, nil, g, w, dw); i < len(g); i++ {
		g[i] = dw[i] + T(strength*w[i])/(spread+T(w[i]*w[i]))
		s.add(i, T(w[i]*g[i]))
	}
	return s.total()
}

// SGLD computes w <- w - rate g + scale z.
func SGLD[T Float](w, g []T, z []float32, rate, scale T) {
	for i := accelerate(ruleSGLD, nil, coefficients[T]{rate, scale}, z, w, g); i < len(w); i++ {
		w[i] = (w[i] - T(rate*g[i])) + T(scale*T(z[i]))
	}
}

// DecayedSGLD is DecayedGradient followed by SGLD in one pass, with the same bits. It returns the
// sum of w g before w moves.
func DecayedSGLD[T Float](w, dw []T, z []float32, decay, rate, scale T) float64 {
	var s sums[T]
	for i := accelerate(ruleDecayedSGLD, &s, coefficients[T]{decay, rate, scale}, z, w, dw); i < len(w); i++ {
		g := decayed(&s, i, w[i], dw[i], decay)
		w[i] = (w[i] - T(rate*g)) + T(scale*T(z[i]))
	}
	return s.total()
}

// PSGLD computes
//
//	v <- keep v + (1 - keep) g^2
//	G  = 1/(lambda + sqrt v)
//	w <- w - rate G g + scale sqrt(G) z
func PSGLD[T Float](w, v, g []T, z []float32, keep, lambda, rate, scale T) {
	c := coefficients[T]{keep, 1 - keep, lambda, 1, rate, scale}
	for i := accelerate(rulePSGLD, nil, c, z, w, v, g); i < len(w); i++ {
		v[i] = averageSquare(v[i], keep, g[i])
		preconditioner := 1 / (lambda + root(v[i]))
		w[i] = (w[i] - T(rate*T(preconditioner*g[i]))) + T(T(scale*root(preconditioner))*T(z[i]))
	}
}

// SGHMC computes v <- keep v - rate g + scale z, w <- w + v.
func SGHMC[T Float](w, v, g []T, z []float32, keep, rate, scale T) {
	for i := accelerate(ruleSGHMC, nil, coefficients[T]{keep, rate, scale}, z, w, v, g); i < len(w); i++ {
		v[i] = (T(keep*v[i]) - T(rate*g[i])) + T(scale*T(z[i]))
		w[i] += v[i]
	}
}

// BAOAB computes u = v - rate g, v <- keep u + scale z, w <- w + fraction (u + v): the kick, the
// Ornstein-Uhlenbeck part, and both drifts.
func BAOAB[T Float](w, v, g []T, z []float32, keep, rate, scale, fraction T) {
	for i := accelerate(ruleBAOAB, nil, coefficients[T]{keep, rate, scale, fraction}, z, w, v, g); i < len(w); i++ {
		kicked := v[i] - T(rate*g[i])
		v[i] = T(keep*kicked) + T(scale*T(z[i]))
		w[i] += T(fraction * (kicked + v[i]))
	}
}

// Drift is BAOAB without the force: u = v, with a fraction of 1/2.
func Drift[T Float](w, v []T, z []float32, keep, scale T) {
	for i := accelerate(ruleDrift, nil, coefficients[T]{keep, scale, 0.5}, z, w, v); i < len(w); i++ {
		old := v[i]
		v[i] = T(keep*old) + T(scale*T(z[i]))
		w[i] += T(0.5 * (old + v[i]))
	}
}
