package kernel

import "math"

// Expm1 fills y with e^x - 1, with a relative error of at most 2^-22 however near 0 x is. It is for
// float32, several elements at a time; y may be x. An element's bits do not depend on its place.
func Expm1(y, x []float32) {
	if len(y) != len(x) {
		panic("kernel: expm1: the slices differ in length")
	}
	if !expm1Fast(y, x) {
		for i, v := range x {
			y[i] = expm1(v)
		}
	}
}

// expm1 is 2^n (e^r - 1) + (2^n - 1), where x = n ln 2 + r and |r| is at most about ln(2)/2, with
// the Taylor series of e^r to the seventh power, whose remainder is below 2^-25. Halves of 2^n stay
// finite where the result does.
func expm1(x float32) float32 {
	const (
		round   = 0x1.8p23 // added, it leaves a whole number in the lowest bits
		ln2High = 0.693359375
		ln2Low  = math.Ln2 - ln2High
	)
	x = max(min(x, 89), -80)
	whole := float32(x*math.Log2E) + round
	power := math.Float32frombits((math.Float32bits(whole) + 126) << 23)
	whole -= round
	r := x - whole*ln2High - whole*ln2Low
	q := float32(1.0 / 5040)
	q = q*r + 1.0/720
	q = q*r + 1.0/120
	q = q*r + 1.0/24
	q = q*r + 1.0/6
	q = q*r + 1.0/2
	q = q*(r*r) + r
	return 2 * (q*power + (power - 0.5))
}
