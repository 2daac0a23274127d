//go:build !purego

package kernel

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
