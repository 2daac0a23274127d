//go:build !purego

package kernel

import "unsafe"

// wideExpFast computes a multiple of eight elements and returns how many.
func wideExpFast(x []float64) int {
	n := len(x) / vector * vector
	if n == 0 || isa == portableGo {
		return 0
	}
	if isa == avx512 {
		wideExpAVX512(unsafe.SliceData(x), n, &wideExponential[0])
	} else {
		wideExpAVX2(unsafe.SliceData(x), n, &wideExponential[0])
	}
	return n
}
