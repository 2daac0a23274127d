//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

//go:generate go run -C generate main.go -out ../avx2_amd64.s -stubs ../avx2_stubs_amd64.go -pkg kernel
//go:generate go run -C generate main.go -avx512 -out ../avx512_amd64.s -stubs ../avx512_stubs_amd64.go -pkg kernel

// available returns the largest instruction set that the processor has, the operating system
// supports (it must save the registers) and GODEBUG allows.
func available() instructionSet {
	switch x := cpu.X86; {
	case !x.HasAVX2 || !x.HasFMA:
		return portableGo
	case !x.HasAVX512 || !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL:
		return avx2
	}
	return avx512
}

// accumulateFourLinesFast exists only in AVX-512, which has registers for the sums.
func accumulateFourLinesFast[T Float](p *linesPlan, images int, padded, dout []T, second, image int, to []T, each int, add bool) bool {
	if !useAssembly[T]() || isa != avx512 {
		return false
	}
	count, rows := len(p.offsets), p.outH
	xRow, xImage := p.strideH*p.paddedW, p.channels*p.paddedH*p.paddedW
	pd := addressOf(dout, (images-1)*image+3*second+rows*p.line)
	px := addressOf(padded, p.reach(images))
	accumulateFourLinesAVX512(pd, second, image, px, &p.offsets[0], count, images, rows, p.line, xRow, xImage, addressOf(to, 4*each), each, add)
	return true
}

// multiplyPairFast is multiplyFast for two panels in AVX-512. The second lies panel elements behind
// the first.
func multiplyPairFast[T Float](rows, depth int, a leftFactor[T], b []T, panel int, c []T, stride int, bias []T, f flags) bool {
	if isa != avx512 || !useAssembly[T]() {
		return false
	}
	t, count, height := splitRows(rows), 0, 0
	for n := 0; n < t.count; n += count {
		count, height = t.run(n)
		lo := t.start(n)
		multiplyPairRun(height, count, depth, a.tile(t, n), b, panel, c[lo*stride:], stride, biasOf(bias, lo, rows, f), f)
	}
	return true
}

// multiplyPairRun is multiplyPair for consecutive tiles of the same number of rows.
func multiplyPairRun[T Float](rows, tiles, depth int, a leftFactor[T], b []T, panel int, c []T, stride int, bias []T, f flags) {
	pa, pc, pv := operandAddresses(rows, tiles, depth, a, c, stride, 2*panelColumns, bias, f)
	pb, step := addressOf(b, panel+depth*panelColumns), a.step(rows)
	if a.rowStride == 1 && a.depthStride == panelColumns {
		multiplyPackedAVX512(rows, tiles, depth, pa, step, pb, panel, pc, stride, pv, int(f))
		return
	}
	multiplyPairAVX512(rows, tiles, depth, pa, a.rowStride, a.depthStride, step, pb, panel, pc, stride, pv, int(f))
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

// copyLinesFast copies lines of at least eight elements.
func copyLinesFast[T Float](to []T, toLine int, from []T, fromLine, lines, width int) bool {
	if !useAssembly[T]() || width < vector || lines < 1 {
		return false
	}
	copyLines(addressOf(to, (lines-1)*toLine+width), toLine, addressOf(from, (lines-1)*fromLine+width), fromLine, lines, width)
	return true
}

// zipLinesFast interleaves even and odd elements into lines, for at least eight pairs per line.
func zipLinesFast[T Float](to []T, toLine int, even, odd []T, fromLine, lines, pairs int) bool {
	if !useAssembly[T]() || pairs < vector || lines < 1 {
		return false
	}
	reach := (lines-1)*fromLine + pairs
	zipLines(addressOf(to, (lines-1)*toLine+2*pairs), toLine, addressOf(even, reach), addressOf(odd, reach), fromLine, lines, pairs)
	return true
}

// copyRowsFast packs whole panels of rows.
func copyRowsFast[T Float](panels []T, size int, source []T, stride, depth, whole int) bool {
	if !useAssembly[T]() || depth == 0 || whole == 0 {
		return false
	}
	to, from := addressOf(panels, (whole-1)*size+depth*panelColumns), addressOf(source, (depth-1)*stride+whole*panelColumns)
	if isa == avx512 {
		copyRowsAVX512(to, size, from, stride, depth, whole)
	} else {
		copyRowsAVX2(to, size, from, stride, depth, whole)
	}
	return true
}

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

// The functions below are trampolines in dispatch_amd64.s: each jumps to the AVX2 or AVX-512
// function of the same signature.

//go:noescape
func multiplyTiles(rows, tiles, depth int, a *float32, rowStride, depthStride, tileStride int, b, c *float32, stride int, bias *float32, f int)

//go:noescape
func multiplyWindows(rows, panels, depth int, a *float32, rowStride int, padded *float32, places, taps *int32, y *float32, plane int, bias *float32, f int)

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

func (p *pass) run(r rule) {
	if isa == avx512 {
		p.runAVX512(r)
	} else {
		p.runAVX2(r)
	}
}
