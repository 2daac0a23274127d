package kernel

// The passes of normalizations compute in float64, even for float32: what they divide by may be
// small, and a difference of large numbers.

// WideSum is the sum of x, in 16 interleaved sums.
func WideSum[T Float](x []T) float64 {
	var s sums[float64]
	for i := accelerateWide(ruleWideSum, &s, coefficients[float64]{}, x); i < len(x); i++ {
		s.add(i, float64(x[i]))
	}
	return s.total()
}

// WideDifference is the sum of x - y.
func WideDifference[T Float](x, y []T) float64 {
	var s sums[float64]
	for i := accelerateWide(ruleWideDifference, &s, coefficients[float64]{}, x, y); i < len(x); i++ {
		s.add(i, float64(x[i])-float64(y[i]))
	}
	return s.total()
}

// WideSquares is the sum of (x - mean)^2.
func WideSquares[T Float](x []T, mean float64) float64 {
	var s sums[float64]
	for i := accelerateWide(ruleWideSquares, &s, coefficients[float64]{mean}, x); i < len(x); i++ {
		d := float64(x[i]) - mean
		s.add(i, float64(d*d))
	}
	return s.total()
}

// WideProducts is the sum of y (x - mean).
func WideProducts[T Float](y, x []T, mean float64) float64 {
	var s sums[float64]
	for i := accelerateWide(ruleWideProducts, &s, coefficients[float64]{mean}, y, x); i < len(x); i++ {
		s.add(i, float64(float64(y[i])*(float64(x[i])-mean)))
	}
	return s.total()
}

// WideAffine is y = (x - mean) scale + shift.
func WideAffine[T Float](y, x []T, mean, scale, shift float64) {
	for i := accelerateWide(ruleWideAffine, nil, coefficients[float64]{mean, scale, shift}, y, x); i < len(y); i++ {
		y[i] = T(float64((float64(x[i])-mean)*scale) + shift)
	}
}

// WideCombine is dx = a dy - ((x - mean) b + c).
func WideCombine[T Float](dx, dy, x []T, mean, a, b, c float64) {
	for i := accelerateWide(ruleWideCombine, nil, coefficients[float64]{mean, b, a, c}, dx, dy, x); i < len(dx); i++ {
		dx[i] = T(float64(a*float64(dy[i])) - (float64((float64(x[i])-mean)*b) + c))
	}
}
