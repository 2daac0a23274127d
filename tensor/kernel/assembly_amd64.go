//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

//go:generate go run -C generate main.go -out ../avx2_amd64.s -stubs ../avx2_stubs_amd64.go -pkg kernel
//go:generate go run -C generate main.go -avx512 -out ../avx512_amd64.s -stubs ../avx512_stubs_amd64.go -pkg kernel

// available is the most that the processor has, the operating system keeps (its registers) and the
// environment allows.
func available() instructions {
	switch x := cpu.X86; {
	case !x.HasAVX2 || !x.HasFMA:
		return portableGo
	case !x.HasAVX512 || !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL:
		return avx2
	}
	return avx512
}

// multiplyPairFast is multiplyFast for two panels, the second of which lies panel elements behind
// the first, in AVX-512.
func multiplyPairFast[T Float](rows, depth int, a left[T], b []T, panel int, c []T, stride int, bias []T, f flags) bool {
	if inUse != avx512 || !fast[T]() {
		return false
	}
	biases := 0
	if f&flagBiasRow != 0 {
		biases = rows
	} else if f&flagBiasColumn != 0 {
		biases = 2 * panelColumns
	}
	pa := first(a.data, (rows-1)*a.rowStride+(depth-1)*a.depthStride+1)
	pb := first(b, panel+depth*panelColumns)
	pc := first(c, (rows-1)*stride+2*panelColumns)
	multiplyPairAVX512(rows, depth, pa, a.rowStride, a.depthStride, pb, panel, pc, stride, first(bias, biases), int(f))
	return true
}

// multiplyAddsFast makes twelve vector multiply-adds in a loop.
func multiplyAddsFast(loops int) (operations float64, ok bool) {
	if !fast[float32]() || loops < 1 {
		return 0, false
	}
	if inUse == avx512 {
		multiplyAddsAVX512(loops)
		return float64(loops * 12 * 2 * vector * 2), true
	}
	multiplyAddsAVX2(loops)
	return float64(loops * 12 * vector * 2), true
}

// What follows chooses between AVX2 and AVX-512.

func multiplyTile(rows, depth int, a *float32, rowStride, depthStride int, b, c *float32, stride int, bias *float32, f int) {
	if inUse == avx512 {
		multiplyTileAVX512(rows, depth, a, rowStride, depthStride, b, c, stride, bias, f)
	} else {
		multiplyTileAVX2(rows, depth, a, rowStride, depthStride, b, c, stride, bias, f)
	}
}

func multiplyTabled(rows, depth int, data *float32, rowOffsets, depthOffsets *int32, b, c *float32, stride int, accumulate bool) {
	if inUse == avx512 {
		multiplyTableAVX512(rows, depth, data, rowOffsets, depthOffsets, b, c, stride, accumulate)
	} else {
		multiplyTableAVX2(rows, depth, data, rowOffsets, depthOffsets, b, c, stride, accumulate)
	}
}

func multiplyWindows(rows, panels, depth int, a *float32, rowStride int, padded *float32, places, taps *int32, y *float32, plane int, bias *float32, f int) {
	if inUse == avx512 {
		multiplyWindowsAVX512(rows, panels, depth, a, rowStride, padded, places, taps, y, plane, bias, f)
	} else {
		multiplyWindowsAVX2(rows, panels, depth, a, rowStride, padded, places, taps, y, plane, bias, f)
	}
}

func scatter(rows, depth, taps int, a *float32, skip int, b, c0, c1 *float32, offsets *int32, plane int) {
	if inUse == avx512 {
		scatterAVX512(rows, depth, taps, a, skip, b, c0, c1, offsets, plane)
	} else {
		scatterAVX2(rows, depth, taps, a, skip, b, c0, c1, offsets, plane)
	}
}

func multiplyLines(dout *float32, second, image int, x *float32, offsets *int32, count, images, rows, line, xRow, xImage int, first, other *float32, add bool) {
	if inUse == avx512 {
		accumulateLinesAVX512(dout, second, image, x, offsets, count, images, rows, line, xRow, xImage, first, other, add)
	} else {
		accumulateLinesAVX2(dout, second, image, x, offsets, count, images, rows, line, xRow, xImage, first, other, add)
	}
}

func windowRuns(panel, padded *float32, runs *[6]int32, taps *int32, depth int) {
	if inUse == avx512 {
		windowRunsAVX512(panel, padded, runs, taps, depth)
	} else {
		windowRunsAVX2(panel, padded, runs, taps, depth)
	}
}

func windowGather(panel, padded *float32, pixels *[16]int32, taps *int32, depth int) {
	if inUse == avx512 {
		windowGatherAVX512(panel, padded, pixels, taps, depth)
	} else {
		windowGatherAVX2(panel, padded, pixels, taps, depth)
	}
}

func maxPlanes(upper, lower, y *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32) {
	if inUse == avx512 {
		maxPlanesAVX512(upper, lower, y, table, pairs, planes, xPlane, yPlane, floor)
	} else {
		maxPlanesAVX2(upper, lower, y, table, pairs, planes, xPlane, yPlane, floor)
	}
}

func maxPlanesBackward(upper, lower, dupper, dlower, gradient *float32, table *int32, pairs, planes, xPlane, yPlane int) {
	if inUse == avx512 {
		maxPlanesBackwardAVX512(upper, lower, dupper, dlower, gradient, table, pairs, planes, xPlane, yPlane)
	} else {
		maxPlanesBackwardAVX2(upper, lower, dupper, dlower, gradient, table, pairs, planes, xPlane, yPlane)
	}
}

func sumRows(y, x *float32, columns, rows, stride int) {
	if inUse == avx512 {
		sumRowsAVX512(y, x, columns, rows, stride)
	} else {
		sumRowsAVX2(y, x, columns, rows, stride)
	}
}

func scaleBytes(y *float32, x *uint8, n int, scale, shift float32) {
	if inUse == avx512 {
		scaleBytesAVX512(y, x, n, scale, shift)
	} else {
		scaleBytesAVX2(y, x, n, scale, shift)
	}
}

func (p *pass) run(r rule) {
	if inUse == avx512 {
		p.runAVX512(r)
	} else {
		p.runAVX2(r)
	}
}
