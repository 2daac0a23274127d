//go:build (amd64 || arm64) && !purego

package kernel

// multiplyFast calls the microkernel once per run of register tiles of equal height: at most two
// calls for any number of rows, so that the cost of a call from Go is spread over many tiles.
func multiplyFast[T Float](rows, depth int, a leftFactor[T], b, c []T, stride int, bias []T, f flags) bool {
	if !useAssembly[T]() || a.rowStride != 1 && a.depthStride != 1 {
		return false
	}
	t, count, height := splitRows(rows), 0, 0
	for n := 0; n < t.count; n += count {
		count, height = t.run(n)
		lo := t.start(n)
		multiplyRun(height, count, depth, a.tile(t, n), b, c[lo*stride:], stride, biasOf(bias, lo, rows, f), f)
	}
	return true
}

// multiplyRun is multiply for consecutive tiles of the same number of rows.
func multiplyRun[T Float](rows, tiles, depth int, a leftFactor[T], b, c []T, stride int, bias []T, f flags) {
	pa, pc, pv := operandAddresses(rows, tiles, depth, a, c, stride, panelColumns, bias, f)
	multiplyTiles(rows, tiles, depth, pa, a.rowStride, a.depthStride, a.step(rows), addressOf(b, depth*panelColumns), pc, stride, pv, int(f))
}

// operandAddresses returns the addresses of the left factor, the output and the bias of a run of
// tiles.
func operandAddresses[T Float](rows, tiles, depth int, a leftFactor[T], c []T, stride, columns int, bias []T, f flags) (pa, pc, pv *float32) {
	biases := 0
	if f&flagBiasRow != 0 {
		biases = rows * tiles
	} else if f&flagBiasColumn != 0 {
		biases = columns
	}
	pa = addressOf(a.data, (tiles-1)*a.step(rows)+(rows-1)*a.rowStride+(depth-1)*a.depthStride+1)
	return pa, addressOf(c, (rows*tiles-1)*stride+columns), addressOf(bias, biases)
}

// multiplyInPlaceFast is multiplyInPlace in assembly.
func multiplyInPlaceFast[T Float](rows, panels, depth int, a []T, aStride int, b []T, bStride int, sums []T, add bool) bool {
	if !useAssembly[T]() {
		return false
	}
	width := panels * panelColumns
	pa, pb := addressOf(a, (depth-1)*aStride+rows), addressOf(b, (depth-1)*bStride+width)
	multiplyPanels(rows, panels, depth, pa, aStride, pb, bStride, addressOf(sums, rows*width), width, add)
	return true
}

// multiplyWindowsFast is multiply for a run of panels that are read in place: element (k, j) is
// padded[half+taps[k]+j].
func multiplyWindowsFast[T Float](rows int, a leftFactor[T], padded []T, places, taps []int32, y []T, plane int, bias []T, f flags) bool {
	if !useAssembly[T]() {
		return false
	}
	panels, depth, biases := len(places)/4, len(taps), 0
	if f&flagBiasRow != 0 {
		biases = rows
	}
	last := places[4*(panels-1):]
	pa := addressOf(a.data, (rows-1)*a.rowStride+depth)
	px := addressOf(padded, int(max(last[0], last[1]))+int(taps[depth-1])+vector)
	py := addressOf(y, int(max(last[2], last[3]))+(rows-1)*plane+vector)
	pv, pp, pt := addressOf(bias, biases), &places[0], &taps[0]
	multiplyWindows(rows, panels, depth, pa, a.rowStride, px, pp, pt, py, plane, pv, int(f))
	return true
}

// multiplyTapsFast calls the microkernel whose left factor is addressed by tables.
func multiplyTapsFast[T Float](data []T, taps []int32, together int, depthOffsets []int32, b, c []T, stride int, accumulate bool) bool {
	if !useAssembly[T]() {
		return false
	}
	rows, depth := len(taps), len(depthOffsets)
	pd := addressOf(data, int(taps[rows-1])+int(depthOffsets[depth-1])+1)
	pb := addressOf(b, depth*panelColumns)
	pc := addressOf(c, (rows-1)*stride+panelColumns)
	multiplyTable(together, rows/together, depth, pd, &taps[0], &depthOffsets[0], pb, pc, stride, accumulate)
	return true
}
