//go:build !purego

package kernel

import "unsafe"

// wideExpFast is WideExp for the first elements, a multiple of eight, and returns their number.
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
