//go:build !purego

package kernel

//go:generate go run -C generate main.go -out ../avx2_amd64.s -stubs ../avx2_stubs_amd64.go -pkg kernel
//go:generate go run -C generate main.go -avx512 -out ../avx512_amd64.s -stubs ../avx512_stubs_amd64.go -pkg kernel

// multiplyAddsFast runs loops of twelve vector multiply-adds.
func multiplyAddsFast(loops int) (operations float64, ok bool) {
	if !useAssembly[float32]() || loops < 1 {
		return 0, false
	}
	if isa == avx512 {
		multiplyAddsAVX512(loops)
		return float64(loops * 12 * 2 * vector * 2), true
	}
	multiplyAddsAVX2(loops)
	return float64(loops * 12 * vector * 2), true
}

// multiplyTable computes tiles whose rows stand for groups of consecutive taps: one tap, or in
// AVX-512 three or five.
func multiplyTable(together, rows, depth int, data *float32, taps, depthOffsets *int32, b, c *float32, stride int, accumulate bool) {
	switch {
	case together == 3:
		multiplyThreeTapsAVX512(rows, depth, data, taps, depthOffsets, b, c, stride, accumulate)
	case together == 5:
		multiplyFiveTapsAVX512(rows, depth, data, taps, depthOffsets, b, c, stride, accumulate)
	case isa == avx512:
		multiplyTableAVX512(rows, depth, data, taps, depthOffsets, b, c, stride, accumulate)
	default:
		multiplyTableAVX2(rows, depth, data, taps, depthOffsets, b, c, stride, accumulate)
	}
}

// The functions below are trampolines in dispatch_amd64.s: each jumps to the AVX2 or AVX-512
// function of the same signature.

//go:noescape
func multiplyTiles(rows, tiles, depth int, a *float32, rowStride, depthStride, tileStride int, b, c *float32, stride int, bias *float32, f int)

//go:noescape
func multiplyWindows(rows, panels, depth int, a *float32, rowStride int, padded *float32, places, taps *int32, y *float32, plane int, bias *float32, f int)

//go:noescape
func multiplyPanels(rows, panels, depth int, a *float32, depthStride int, b *float32, stride int, sums *float32, width int, add bool)

//go:noescape
func scatter(rows, depth, taps int, a *float32, skip int, b, c0, c1 *float32, offsets *int32, plane int)

//go:noescape
func multiplyLines(dout *float32, second, image int, x *float32, offsets *int32, count, images, rows, line, xRow, xImage int, first, other *float32, add bool)

//go:noescape
func windowRuns(panel, padded *float32, runs *[6]int32, taps *int32, depth int)

//go:noescape
func windowGather(panel, padded *float32, pixels *[16]int32, taps *int32, depth int)

//go:noescape
func maxPlanes(upper, lower, y *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)

//go:noescape
func notePlaces(upper, lower *float32, places *uint8, table *int32, pairs, planes, xPlane, yPlane int)

//go:noescape
func spreadPlaces(dupper, dlower, gradient *float32, places *uint8, table *int32, pairs, planes, xPlane, yPlane int, mask uint32)

//go:noescape
func sumRows(y, x *float32, columns, rows, stride int)

//go:noescape
func scaleBytes(y *float32, x *uint8, n int, scale, shift float32)

//go:noescape
func tapSums(to *float32, blocks int, from *float32, offsets *int32, weights *float32, taps int, epilogue *float32)

//go:noescape
func tapProductsOf(sums, line *float32, blocks int, from *float32, offsets *int32, rows int, add bool)

// tapsTogether returns the number of taps that one call of tapProductsOf takes.
func tapsTogether() int {
	if isa == avx512 {
		return 9
	}
	return minRows
}
