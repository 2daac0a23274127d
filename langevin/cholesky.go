package langevin

import (
	"math"

	"github.com/pollen-ml/pollen/tensor/kernel"
)

// whiten fills p [n n] with the inverse of the Cholesky factor L of a [n n] + damping I. p is lower
// triangular, p (a + damping I) p' = I, and p' p is the inverse. a must be symmetric and positive
// semidefinite up to rounding: a pivot is then at least damping, and is raised to damping where
// rounding made it smaller. row is scratch memory [n].
func whiten[T float32 | float64](p, a, row []T, damping float64) {
	n := len(row)
	for i := range n {
		li := p[i*n : (i+1)*n]
		for j := range i {
			lj := p[j*n : (j+1)*n]
			li[j] = T((float64(a[i*n+j]) - kernel.Dot(li[:j], lj[:j])) / float64(lj[j]))
		}
		li[i] = T(math.Sqrt(max(damping, float64(a[i*n+i])+damping-kernel.Dot(li[:i], li[:i]))))
	}
	// Row i of the inverse is (e_i - sum over k < i of L[i k] row k)/L[i i].
	for i := range n {
		li := p[i*n : (i+1)*n]
		copy(row, li[:i+1])
		clear(li)
		for k, l := range row[:i] {
			kernel.SGD(li[:k+1], p[k*n:k*n+k+1], 0, l) // li -= l row k
		}
		scale := 1 / row[i]
		for j := range li[:i] {
			li[j] *= scale
		}
		li[i] = scale
	}
}
