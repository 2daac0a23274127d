//go:build !purego

package kernel

import "unsafe"

// gramTile returns the rows and columns of the products that gramTileFast computes.
func gramTile() (height, width int) {
	switch isa {
	case avx512:
		return 4, 4
	case avx2:
		return 2, 3
	}
	return 1, 1
}

// gramTileFast computes the inner products of the rows that start at a with those that start at b.
func gramTileFast(sums *gramSums, a, b []float64, columns int) bool {
	height, width := gramTile()
	pa := unsafe.SliceData(a[:(height-1)*gramStride+columns])
	pb := unsafe.SliceData(b[:(width-1)*gramStride+columns])
	switch isa {
	case avx512:
		gramTileAVX512(&sums[0], pa, pb, gramStride, columns)
	case avx2:
		gramTileAVX2(&sums[0], pa, pb, gramStride, columns)
	default:
		return false
	}
	return true
}

// widenFast converts the first elements of x, a multiple of gramLanes, and returns their number.
func widenFast(y []float64, x []float32) int {
	n := len(x) / gramLanes * gramLanes
	if n == 0 || isa == portableGo {
		return 0
	}
	to, from := unsafe.SliceData(y[:n]), unsafe.SliceData(x[:n])
	if isa == avx512 {
		widenAVX512(to, from, n)
	} else {
		widenAVX2(to, from, n)
	}
	return n
}
