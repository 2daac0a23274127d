package kernel

import "math"

// WideExp replaces each element by e^x, with a relative error of at most 2^-52. Below -708, where
// it would be subnormal, the result is 0; above 709 it is e^709.
//
// It is a sequence of correctly rounded operations, so portable Go and all assembly give the same
// bits, which math.Exp does not promise.
func WideExp(x []float64) {
	for i := wideExpFast(x); i < len(x); i++ {
		x[i] = wideExp(x[i])
	}
}

// The constants of WideExp, similar to halfPowers': adding wideRound leaves the rounded number in
// the lowest bits of the mantissa, and the products of wideLn2High with whole numbers are exact.
const (
	wideLowest, wideHighest = -708, 709
	wideRound               = 0x1.8p52
	wideExponent            = 1023 // the exponent of 1
	wideLn2High             = 0x1.62e42feep-1
	wideLn2Low              = math.Ln2 - wideLn2High
)

// wideExponential has these constants and the terms of the series, in the assembly's order.
var wideExponential = [...]float64{
	wideLowest, wideHighest, math.Log2E, wideRound, math.Float64frombits(wideExponent), wideLn2High, wideLn2Low,
	1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
	1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1,
}

// wideExp computes 2^n e^r, where x = n ln 2 + r and |r| is at most about ln(2)/2, by the Taylor
// series to the thirteenth power, whose remainder is below 2^-57.
func wideExp(x float64) float64 {
	if x < wideLowest {
		return 0
	}
	bounded := max(min(x, wideHighest), wideLowest)
	whole := float64(bounded*math.Log2E) + wideRound
	power := math.Float64frombits((math.Float64bits(whole) + wideExponent) << 52)
	whole -= wideRound
	r := bounded - float64(whole*wideLn2High) - float64(whole*wideLn2Low)
	q := wideExponential[7]
	for _, term := range wideExponential[8:19] {
		q = float64(q*r) + term
	}
	q = float64(q*float64(r*r)) + r
	return (1 + q) * power
}

// SumExpRows is the number of rows of SumExp.
const SumExpRows = vector

// SumExp computes the exponentials of eight rows z of the given width, and their sums:
//
//	largest[i] = max over k of z[i*width+k]
//	e[8*k+i] = exp(z[i*width+k] - largest[i])
//	sums[i] = sum over k of e[8*k+i]
//
// A row with a NaN, with an infinite maximum or with nothing but -Inf has the sum NaN. The bits
// equal WideExp's and those of sums from the left on all instruction sets.
func SumExp[T Float](z []T, width int, e []float64, largest, sums *[SumExpRows]float64) {
	if sumExpFast(z, width, e, largest, sums) {
		return
	}
	for i := range SumExpRows {
		row, top, sum := z[i*width:][:width], math.NaN(), 0.0
		for _, v := range row {
			if !(float64(v) < top) {
				top = float64(v)
			}
		}
		for k, v := range row {
			y := wideExp(float64(v) - top)
			e[SumExpRows*k+i] = y
			sum += y
		}
		largest[i], sums[i] = top, sum
	}
}
