package kernel

import "math"

// The functions of this file are defined as sequences of correctly rounded float32 operations, so
// portable Go and all assembly give the same bits. y may be x.

// Expm1 computes y = e^x - 1, with a relative error of at most 2^-22, however near x is to 0.
func Expm1(y, x []float32) {
	for i := accelerate(ruleExpm1, nil, exponential(), nil, y, x); i < len(y); i++ {
		y[i] = expm1(x[i])
	}
}

// Sigmoid computes y = 1/(1 + e^-x), with a relative error of at most 2^-22.
func Sigmoid(y, x []float32) {
	for i := accelerate(ruleSigmoid, nil, exponential(), nil, y, x); i < len(y); i++ {
		y[i] = sigmoid(x[i])
	}
}

// SigmoidGradient computes dx = dout y (1 - y).
func SigmoidGradient(dx, dout, y []float32) {
	for i := accelerate(ruleSigmoidGradient, nil, coefficients[float32]{1}, nil, dx, dout, y); i < len(dx); i++ {
		dx[i] = dout[i] * (y[i] * (1 - y[i]))
	}
}

// SiLU computes y = x/(1 + e^-x), with a relative error of at most 2^-21.
func SiLU(y, x []float32) {
	for i := accelerate(ruleSiLU, nil, exponential(), nil, y, x); i < len(y); i++ {
		y[i] = x[i] * sigmoid(x[i])
	}
}

// SiLUGradient computes dx = dout s (1 + x (1 - s)), where s = 1/(1 + e^-x), 1 - s = e^-x s, and x
// is clamped to at least -80.
func SiLUGradient(dx, dout, x []float32) {
	for i := accelerate(ruleSiLUGradient, nil, exponential(), nil, dx, dout, x); i < len(dx); i++ {
		v := max(x[i], expLowest)
		e := exp(-v)
		s := 1 / (1 + e)
		dx[i] = dout[i] * (s * (1 + float32(v*float32(e*s))))
	}
}

// Tanh computes the hyperbolic tangent, with a relative error of at most 2^-21.
func Tanh(y, x []float32) {
	for i := accelerate(ruleTanh, nil, exponential(), nil, y, x); i < len(y); i++ {
		y[i] = tanh(x[i])
	}
}

// TanhGradient computes dx = dout (1 - y^2).
func TanhGradient(dx, dout, y []float32) {
	for i := accelerate(ruleTanhGradient, nil, coefficients[float32]{1}, nil, dx, dout, y); i < len(dx); i++ {
		dx[i] = dout[i] * ((1 - y[i]) * (1 + y[i]))
	}
}

// Erf computes the error function, with a relative error of at most 2^-21.
func Erf(y, x []float32) {
	for i := accelerate(ruleErf, nil, errorFunction, nil, y, x); i < len(y); i++ {
		y[i] = erf(x[i])
	}
}

// GELU computes y = x Phi(x) = x (1 + erf(x/sqrt 2))/2, with an error of at most 2^-21 |x|.
func GELU(y, x []float32) {
	for i := accelerate(ruleGELU, nil, errorFunction, nil, y, x); i < len(y); i++ {
		y[i] = float32(x[i]*errorFunction[2]) * (erf(float32(x[i]*errorFunction[1])) + 1)
	}
}

// GELUGradient computes dx = dout (Phi(x) + x phi(x)), where phi is the density of the normal
// distribution Phi.
func GELUGradient(dx, dout, x []float32) {
	const density = math.Sqrt2 / math.SqrtPi / 2 // phi(0)
	var exponents, powers, errorFunctions, arguments [256]float32
	for len(dx) > 0 {
		n := min(len(dx), len(powers))
		for i, v := range x[:n] {
			exponents[i], arguments[i] = float32(v*v)*-0.5, v*errorFunction[1]
		}
		Expm1(powers[:n], exponents[:n])
		Erf(errorFunctions[:n], arguments[:n])
		for i, v := range x[:n] {
			phi := (powers[i] + 1) * density
			dx[i] = dout[i] * (float32((errorFunctions[i]+1)*0.5) + float32(v*phi))
		}
		dx, dout, x = dx[n:], dout[n:], x[n:]
	}
}

// errorFunction has the coefficients of erf, in the assembly's order: the bound of x, sqrt(1/2) and
// 1/2 for GELU, the numerator from its highest power, and the denominator.
var errorFunction = coefficients[float32]{
	4, math.Sqrt2 / 2, 0.5,
	1.9867869411993735e-6, 2.8456392236565775e-4, 3.883281007165671e-3, 5.3101557704237655e-2, 0.19354366821690944, 1.128379139336981,
	3.742011639863691e-5, 1.1855546480339194e-3, 1.5207128486621715e-2, 0.1153494194442518, 0.5048561662248351, 1,
}

// erf is x P(x^2)/Q(x^2) for x between -4 and 4, beyond which it is 1 in float32. P and Q are of
// degree 5 and minimise the largest relative error, 2.5e-8, found by weighted least squares.
func erf(x float32) float32 {
	c := &errorFunction
	x = max(min(x, c[0]), -c[0])
	t := float32(x * x)
	above, below := c[3], c[9]
	for _, term := range c[4:9] {
		above = float32(above*t) + term
	}
	for _, term := range c[10:15] {
		below = float32(below*t) + term
	}
	return max(min(float32(above*x)/below, 1), -1)
}

// ELU computes y = x where x > 0, and alpha (e^x - 1) elsewhere.
func ELU(y, x []float32, alpha float32) {
	c := exponential()
	c[exponentialAlpha] = alpha
	for i := accelerate(ruleELU, nil, c, nil, y, x); i < len(y); i++ {
		y[i] = max(x[i], 0) + float32(alpha*expm1(min(x[i], 0)))
	}
}

// Softplus computes y = ln(1 + e^x), with a relative error of at most 2^-21. Below -80, it has the
// value at -80.
func Softplus(y, x []float32) {
	c := exponential()
	copy(c[exponentialSeries:], logarithmSeries[:])
	for i := accelerate(ruleSoftplus, nil, c, nil, y, x); i < len(y); i++ {
		y[i] = softplus(x[i])
	}
}

// SoftplusGradient computes dx = dout (1 - e^-y), the gradient of [Softplus] at y.
func SoftplusGradient(dx, dout, y []float32) {
	for i := accelerate(ruleSoftplusGradient, nil, exponential(), nil, dx, dout, y); i < len(dx); i++ {
		dx[i] = dout[i] * -expm1(-y[i])
	}
}

// The constants of e^x - 1. Adding expRound leaves the rounded number in the lowest bits of the
// mantissa.
const (
	expHighest, expLowest = 89, -80
	expRound              = 0x1.8p23
	expExponent           = 126 // the exponent of 1/2
	ln2High               = 0.693359375
	ln2Low                = math.Ln2 - ln2High
)

// The indices of ELU's alpha and of Softplus's series among the coefficients.
const (
	exponentialAlpha  = 15
	exponentialSeries = 16
)

// exponential returns these constants as coefficients of a pass, in the assembly's order.
func exponential() coefficients[float32] {
	return coefficients[float32]{
		expHighest, expLowest, math.Log2E, expRound, math.Float32frombits(expExponent), ln2High, ln2Low,
		1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 2,
	}
}

// expm1 computes 2^n (e^r - 1) + (2^n - 1).
func expm1(x float32) float32 {
	product, power := halfPowers(x)
	return 2 * (product + (power - 0.5))
}

// exp computes 2^n (e^r - 1) + 2^n, for x of at least -80.
func exp(x float32) float32 {
	product, power := halfPowers(x)
	return 2 * (product + power)
}

// halfPowers returns halves of 2^n (e^r - 1) and of 2^n, where x = n ln 2 + r and |r| is at most
// about ln(2)/2. e^r is the Taylor series to the seventh power, whose remainder is below 2^-25.
// Halves stay finite where the whole would overflow. ln 2 is subtracted in two parts; the high one
// has so few bits that its product with n is exact.
func halfPowers(x float32) (product, power float32) {
	// Beyond expHighest e^x overflows float32; below expLowest it is treated as e^expLowest, which
	// keeps 2^n a normal number.
	x = max(min(x, expHighest), expLowest)
	whole := float32(x*math.Log2E) + expRound
	power = math.Float32frombits((math.Float32bits(whole) + expExponent) << 23)
	whole -= expRound
	r := x - float32(whole*ln2High) - float32(whole*ln2Low)
	// Horner's scheme for (e^r - 1 - r)/r^2, then e^r - 1 = r + r^2 q.
	q := float32(1.0 / 5040)
	q = float32(q*r) + 1.0/720
	q = float32(q*r) + 1.0/120
	q = float32(q*r) + 1.0/24
	q = float32(q*r) + 1.0/6
	q = float32(q*r) + 1.0/2
	q = float32(q*float32(r*r)) + r
	return float32(q * power), power
}

// logarithmSeries has coefficients of atanh(s)/s - 1, a series in s^2, from the highest power.
var logarithmSeries = [...]float32{1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3}

// softplus computes max(x, 0) + ln(1 + u), where u = e^-|x| and ln(1 + u) = 2 atanh(u/(2 + u)). The
// remainder of the series is below 2^-26.
func softplus(x float32) float32 {
	u := exp(math.Float32frombits(math.Float32bits(x) | 1<<31))
	s := u / (2 + u)
	z := float32(s * s)
	q := logarithmSeries[0]
	for _, term := range logarithmSeries[1:] {
		q = float32(q*z) + term
	}
	half := float32(s*float32(q*z)) + s
	return max(x, 0) + (half + half)
}

func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

// tanh computes -e/(2 + e) with the sign of x, where e = e^(-2|x|) - 1: nothing overflows, and
// nothing cancels near 0.
func tanh(x float32) float32 {
	const sign = 1 << 31
	e := expm1(2 * math.Float32frombits(math.Float32bits(x)|sign))
	return math.Float32frombits(math.Float32bits(e/(2+e))&^sign | math.Float32bits(x)&sign)
}
