package optest

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// Tol is a tolerance: |got - want| <= Abs + Rel |want|.
type Tol struct {
	Abs, Rel float64
}

// Epsilon returns the machine epsilon of a type, the distance from 1 to the next number.
func Epsilon(dtype tensor.DType) float64 {
	if dtype == tensor.Float32 {
		return 0x1p-23
	}
	return 0x1p-52
}

// SumTol returns the tolerance of sums of terms terms, computed in dtype. Rel is 4 epsilon
// sqrt(terms): independent rounding errors grow like sqrt(terms), and 4 is a margin. Abs is Rel
// times the root mean square of the finite wanted values, because a sum that cancels has the
// rounding error of its terms.
func SumTol(dtype tensor.DType, terms int, want []float64) Tol {
	rel := 4 * Epsilon(dtype) * math.Sqrt(float64(max(1, terms)))
	norm, finite := 0.0, 0
	for _, v := range want {
		if !math.IsInf(v, 0) {
			norm, finite = math.Hypot(norm, v), finite+1
		}
	}
	return Tol{Abs: rel * norm / math.Sqrt(float64(max(1, finite))), Rel: rel}
}

// distance returns |got - want| in units of the tolerance.
func distance(got, want float64, tol Tol) float64 {
	if got == want {
		return 0
	}
	e := math.Abs(got-want) / (tol.Abs + tol.Rel*math.Abs(want))
	if math.IsNaN(e) || math.IsInf(got, 0) || math.IsInf(want, 0) {
		return math.Inf(1)
	}
	return e
}

// ulps returns the distance of two numbers in units in the last place of the narrowest type that
// holds all of got.
func ulps(got []float64, a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	for _, v := range got {
		if float64(float32(v)) != v && !math.IsNaN(v) {
			return between(math.Float64bits(a), math.Float64bits(b), 63)
		}
	}
	return between(uint64(math.Float32bits(float32(a))), uint64(math.Float32bits(float32(b))), 31)
}

// between counts the steps from one floating-point number to another, given their bits and the
// place of the sign bit.
func between(a, b uint64, sign int) float64 {
	if a>>sign == b>>sign {
		return float64(max(a, b) - min(a, b))
	}
	return float64(a&^(1<<sign) + b&^(1<<sign))
}
