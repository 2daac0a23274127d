package kernel

// PlanesTogether is the maximum number of planes of one call of the functions over planes.
const PlanesTogether = 32

// The functions over planes process planes of equal size that lie one after another, each with its
// own coefficients, since for small planes a call per plane would cost more than the work. Wide
// functions compute in float64, whatever T is. Sums are 16 interleaved partial sums.

// noCoefficients are the coefficients of a sum.
var noCoefficients []float64

// SumPlanes sets each total to the sum of its plane, added in T.
func SumPlanes[T Float](totals []float64, x []T) {
	var s [PlanesTogether]sums[T]
	width := len(x) / len(totals)
	from := acceleratePlanes(ruleSum, len(totals), s[:len(totals)], noCoefficients, x)
	for plane := range totals {
		for i := from; i < width; i++ {
			s[plane].add(i, x[plane*width+i])
		}
		totals[plane] = s[plane].total()
	}
}

// WideSum returns the sum of x, added in float64.
func WideSum[T Float](x []T) float64 {
	var total [1]float64
	var s [1]sums[float64]
	wideSums(s[:], total[:], x)
	return total[0]
}

// WideSumPlanes sets each total to the sum of its plane.
func WideSumPlanes[T Float](totals []float64, x []T) {
	var s [PlanesTogether]sums[float64]
	wideSums(s[:len(totals)], totals, x)
}

// wideSums is WideSumPlanes with the memory for the partial sums as an argument. WideSum passes
// memory for one plane, since clearing that for PlanesTogether planes takes as long as summing a
// short plane.
func wideSums[T Float](s []sums[float64], totals []float64, x []T) {
	width := len(x) / len(totals)
	from := acceleratePlanes(ruleWideSum, len(totals), s, noCoefficients, x)
	for plane := range totals {
		for i := from; i < width; i++ {
			s[plane].add(i, float64(x[plane*width+i]))
		}
		totals[plane] = s[plane].total()
	}
}

// WideDifferencePlanes sets each total to the sum of x - y.
func WideDifferencePlanes[T Float](totals []float64, x, y []T) {
	var s [PlanesTogether]sums[float64]
	width := len(x) / len(totals)
	from := acceleratePlanes(ruleWideDifference, len(totals), s[:len(totals)], noCoefficients, x, y)
	for plane := range totals {
		for i := from; i < width; i++ {
			s[plane].add(i, float64(x[plane*width+i])-float64(y[plane*width+i]))
		}
		totals[plane] = s[plane].total()
	}
}

// WideSquaresPlanes sets each total to the sum of (x - mean)^2, for a variance.
func WideSquaresPlanes[T Float](totals []float64, x []T, means []float64) {
	var s [PlanesTogether]sums[float64]
	width := len(x) / len(totals)
	from := acceleratePlanes(ruleWideSquares, len(totals), s[:len(totals)], means, x)
	for plane := range totals {
		for i := from; i < width; i++ {
			d := float64(x[plane*width+i]) - means[plane]
			s[plane].add(i, float64(d*d))
		}
		totals[plane] = s[plane].total()
	}
}

// WideProductsPlanes sets each total to the sum of y (x - mean), for a covariance.
func WideProductsPlanes[T Float](totals []float64, y, x []T, means []float64) {
	var s [PlanesTogether]sums[float64]
	width := len(x) / len(totals)
	from := acceleratePlanes(ruleWideProducts, len(totals), s[:len(totals)], means, y, x)
	for plane := range totals {
		for i := from; i < width; i++ {
			s[plane].add(i, float64(float64(y[plane*width+i])*(float64(x[plane*width+i])-means[plane])))
		}
		totals[plane] = s[plane].total()
	}
}

// WideAffinePlanes computes y = (x - Mean) Scale + Shift, a normalization.
func WideAffinePlanes[T Float](y, x []T, planes []Affine) {
	width := len(y) / len(planes)
	from := acceleratePlanes[T, float64](ruleWideAffine, len(planes), nil, planes, y, x)
	for plane, p := range planes {
		for i := plane*width + from; i < (plane+1)*width; i++ {
			y[i] = T(float64((float64(x[i])-p.Mean)*p.Scale) + p.Shift)
		}
	}
}

// WideAffineRow computes y = (x - mean) (inverse scale) + shift, the normalization of a row whose
// elements have a scale and a shift each.
func WideAffineRow[T Float](y, x, scale, shift []T, mean, inverse float64) {
	c := [1][2]float64{{mean, inverse}}
	from := acceleratePlanes[T, float64](ruleWideAffineRow, 1, nil, c[:], y, x, scale, shift)
	for i := from; i < len(y); i++ {
		y[i] = T(float64((float64(x[i])-mean)*float64(float64(scale[i])*inverse)) + float64(shift[i]))
	}
}

// WideCombinePlanes computes dx = A dy - ((x - Mean) B + C), the gradient of a normalization.
func WideCombinePlanes[T Float](dx, dy, x []T, planes []Combination) {
	width := len(dx) / len(planes)
	from := acceleratePlanes[T, float64](ruleWideCombine, len(planes), nil, planes, dx, dy, x)
	for plane, p := range planes {
		for i := plane*width + from; i < (plane+1)*width; i++ {
			dx[i] = T(float64(p.A*float64(dy[i])) - (float64((float64(x[i])-p.Mean)*p.B) + p.C))
		}
	}
}

// MultiplyPlanes computes y = x factor with a factor per plane.
func MultiplyPlanes[T Float](y, x, factors []T) {
	width := len(y) / len(factors)
	from := acceleratePlanes[T, T](ruleMultiplyPlane, len(factors), nil, factors, y, x)
	for plane, factor := range factors {
		for i := plane*width + from; i < (plane+1)*width; i++ {
			y[i] = x[i] * factor
		}
	}
}

// AddPlanes computes y = x + term with a term per plane.
func AddPlanes[T Float](y, x, terms []T) {
	width := len(y) / len(terms)
	from := acceleratePlanes[T, T](ruleAddPlane, len(terms), nil, terms, y, x)
	for plane, term := range terms {
		for i := plane*width + from; i < (plane+1)*width; i++ {
			y[i] = x[i] + term
		}
	}
}

// RaisePlanes computes y = max(x, bound) with a bound per plane, as Raise does.
func RaisePlanes[T Float](y, x, bounds []T) {
	width := len(y) / len(bounds)
	from := acceleratePlanes[T, T](ruleRaise, len(bounds), nil, bounds, y, x)
	for plane, bound := range bounds {
		for i := plane*width + from; i < (plane+1)*width; i++ {
			y[i] = max(x[i], bound) + 0
		}
	}
}

// PassAbovePlanes computes dx = dout where y > bound and 0 elsewhere, with a bound per plane.
func PassAbovePlanes[T Float](dx, dout, y, bounds []T) {
	width := len(y) / len(bounds)
	from := acceleratePlanes[T, T](rulePassAbove, len(bounds), nil, bounds, dx, dout, y)
	for plane, bound := range bounds {
		lo, hi := plane*width+from, (plane+1)*width
		PassAbove(dx[lo:hi], dout[lo:hi], y[lo:hi], bound)
	}
}
