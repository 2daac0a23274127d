package kernel

// The passes of optimizers. Each starts with g = dw + decay w and returns the sum of w g before w
// moves. The order of operations is the same as in the samplers' passes, which give the same bits
// at temperature 0.

// SGD computes w <- w - rate g.
func SGD[T Float](w, dw []T, decay, rate T) float64 {
	var s sums[T]
	for i := accelerate(ruleSGD, &s, coefficients[T]{decay, rate}, nil, w, dw); i < len(w); i++ {
		g := decayed(&s, i, w[i], dw[i], decay)
		w[i] -= T(rate * g)
	}
	return s.total()
}

// Momentum computes v <- keep v + rate g, w <- w - v.
func Momentum[T Float](w, dw, v []T, decay, keep, rate T) float64 {
	var s sums[T]
	for i := accelerate(ruleMomentum, &s, coefficients[T]{decay, keep, rate}, nil, w, dw, v); i < len(w); i++ {
		g := decayed(&s, i, w[i], dw[i], decay)
		v[i] = T(keep*v[i]) + T(rate*g)
		w[i] -= v[i]
	}
	return s.total()
}

// Nesterov computes v <- keep v + rate g, w <- w - (rate g + keep v).
func Nesterov[T Float](w, dw, v []T, decay, keep, rate T) float64 {
	var s sums[T]
	for i := accelerate(ruleNesterov, &s, coefficients[T]{decay, keep, rate}, nil, w, dw, v); i < len(w); i++ {
		g := decayed(&s, i, w[i], dw[i], decay)
		move := T(rate * g)
		v[i] = T(keep*v[i]) + move
		w[i] -= move + T(keep*v[i])
	}
	return s.total()
}

// Adagrad computes v <- v + g^2, w <- w - rate g/(sqrt v + epsilon).
func Adagrad[T Float](w, dw, v []T, decay, rate, epsilon T) float64 {
	var s sums[T]
	for i := accelerate(ruleAdagrad, &s, coefficients[T]{decay, rate, epsilon, 1}, nil, w, dw, v); i < len(w); i++ {
		g := decayed(&s, i, w[i], dw[i], decay)
		v[i] += T(g * g)
		w[i] -= T(rate * preconditioned(g, v[i], epsilon))
	}
	return s.total()
}

// RMSProp computes v <- keep v + (1 - keep) g^2, w <- w - rate g/(sqrt v + epsilon).
func RMSProp[T Float](w, dw, v []T, decay, keep, rate, epsilon T) float64 {
	var s sums[T]
	c := coefficients[T]{decay, rate, epsilon, 1, keep, 1 - keep}
	for i := accelerate(ruleRMSProp, &s, c, nil, w, dw, v); i < len(w); i++ {
		g := decayed(&s, i, w[i], dw[i], decay)
		v[i] = averageSquare(v[i], keep, g)
		w[i] -= T(rate * preconditioned(g, v[i], epsilon))
	}
	return s.total()
}

// Adadelta computes
//
//	v <- keep v + (1 - keep) g^2
//	d  = sqrt(u + epsilon)/sqrt(v + epsilon) g
//	u <- keep u + (1 - keep) d^2
//	w <- w - d
func Adadelta[T Float](w, dw, v, u []T, decay, keep, epsilon T) float64 {
	var s sums[T]
	for i := accelerate(ruleAdadelta, &s, coefficients[T]{decay, epsilon, keep, 1 - keep}, nil, w, dw, v, u); i < len(w); i++ {
		g := decayed(&s, i, w[i], dw[i], decay)
		v[i] = averageSquare(v[i], keep, g)
		d := T(T(root(u[i]+epsilon)/root(v[i]+epsilon)) * g)
		u[i] = averageSquare(u[i], keep, d)
		w[i] -= d
	}
	return s.total()
}

// AdamStep holds Adam's scalars at step t.
type AdamStep[T Float] struct {
	Decay, DecayInStep T // weight decay: in the gradient, or decoupled as in AdamW
	Beta1, Beta2       T
	Correct1, Correct2 T // 1/(1 - beta^t)
	Rate, Epsilon      T
}

// Adam computes
//
//	m <- beta1 m + (1 - beta1) g
//	v <- beta2 v + (1 - beta2) g^2
//	w <- w - rate (correct1 m/(sqrt(correct2 v) + epsilon) + decayInStep w)
func Adam[T Float](w, dw, m, v []T, a AdamStep[T]) float64 {
	var s sums[T]
	c := coefficients[T]{a.Decay, a.Rate, a.Epsilon, 1, a.Beta1, 1 - a.Beta1, a.Beta2, 1 - a.Beta2, a.Correct1, a.Correct2, a.DecayInStep}
	for i := accelerate(ruleAdam, &s, c, nil, w, dw, m, v); i < len(w); i++ {
		theta := w[i]
		g := decayed(&s, i, theta, dw[i], a.Decay)
		m[i] = T(a.Beta1*m[i]) + T((1-a.Beta1)*g)
		v[i] = averageSquare(v[i], a.Beta2, g)
		step := preconditioned(T(a.Correct1*m[i]), T(a.Correct2*v[i]), a.Epsilon)
		w[i] = theta - T(a.Rate*(step+T(a.DecayInStep*theta)))
	}
	return s.total()
}

// preconditioned returns g / (sqrt(square) + epsilon).
func preconditioned[T Float](g, square, epsilon T) T {
	return T(T(1/(epsilon+root(square))) * g)
}
