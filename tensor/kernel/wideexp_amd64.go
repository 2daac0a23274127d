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

// sumExpFast is SumExp for float32.
func sumExpFast[T Float](z []T, width int, e []float64, largest, sums *[SumExpRows]float64) bool {
	if !useAssembly[T]() || width < 1 {
		return false
	}
	from, to := addressOf(z, SumExpRows*width), unsafe.SliceData(e[:SumExpRows*width])
	var rows [SumExpRows]int32
	for i := range rows {
		rows[i] = int32(i * width)
	}
	if isa == avx512 {
		sumExpAVX512(from, &rows, width, to, &largest[0], &sums[0], &wideExponential[0])
	} else {
		sumExpAVX2(from, &rows, width, to, &largest[0], &sums[0], &wideExponential[0])
	}
	return true
}
