package kernel

import "math"

// decayed returns the gradient g = dw + decay w of element i and adds w g to the statistic.
func decayed[T Float](s *sums[T], i int, w, dw, decay T) T {
	g := dw + T(decay*w)
	s.add(i, T(w*g))
	return g
}

// averageSquare returns the running mean of squares, updated with g.
func averageSquare[T Float](mean, keep, g T) T {
	return T(keep*mean) + T(T((1-keep)*g)*g)
}

// root returns the square root in T.
func root[T Float](v T) T { return T(math.Sqrt(float64(v))) }
