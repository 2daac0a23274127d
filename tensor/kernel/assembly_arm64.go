//go:build !purego

package kernel

//go:generate go run -C generate ./neon -out ../neon_arm64.s -stubs ../neon_stubs_arm64.go

// multiplyPairFast returns false: NEON has registers for the sums of one panel only, so the caller
// multiplies panel by panel.
func multiplyPairFast[T Float](rows, depth int, a leftFactor[T], b []T, panel int, c []T, stride int, bias []T, f flags) bool {
	return false
}

// multiplyPointsFast returns false, so the caller multiplies point by point.
func multiplyPointsFast[T Float](p *winogradPlan, rows, panels int, a, b, c []T) bool { return false }

// multiplyTable computes tiles whose rows are single taps.
func multiplyTable(_, rows, depth int, data *float32, taps, depthOffsets *int32, b, c *float32, stride int, accumulate bool) {
	multiplyTabled(rows, depth, data, taps, depthOffsets, b, c, stride, accumulate)
}

// copyLinesFast, zipLinesFast and copyRowsFast return false: the caller then uses Go's copy, which
// has NEON already.
func copyLinesFast[T Float](to []T, toLine int, from []T, fromLine, lines, width int) bool {
	return false
}

func zipLinesFast[T Float](to []T, toLine int, even, odd []T, fromLine, lines, pairs int) bool {
	return false
}

// unzipLinesFast separates the even and odd elements of lines of at least four pairs.
func unzipLinesFast[T Float](even, odd []T, toLine int, from []T, fromLine, lines, pairs int) bool {
	if !useAssembly[T]() || pairs < vector/2 || lines < 1 {
		return false
	}
	reach := (lines-1)*toLine + pairs
	unzipLines(addressOf(even, reach), addressOf(odd, reach), toLine, addressOf(from, (lines-1)*fromLine+2*pairs), fromLine, lines, pairs)
	return true
}

// tapsTogether returns the number of taps that one call of tapProductsOf takes.
func tapsTogether() int { return minRows }

func copyRowsFast[T Float](panels []T, size int, source []T, stride, depth, whole int) bool {
	return false
}

// accumulateFourLinesFast returns false, so the caller processes two channels at a time.
func accumulateFourLinesFast[T Float](p *linesPlan, images int, padded, dout []T, second, image int, to []T, each int, add bool) bool {
	return false
}

// multiplyAddsFast runs loops of 24 vector multiply-adds, of vector/2 elements each.
func multiplyAddsFast(loops int) (operations float64, ok bool) {
	if !useAssembly[float32]() || loops < 1 {
		return 0, false
	}
	multiplyAdds(loops)
	return float64(loops * 24 * vector / 2 * 2), true
}

var transformsNEON = transforms{
	winogradInput43NEON, winogradOutput43NEON, winogradFilter43NEON, winogradSpread43NEON, winogradOverlap43NEON, winogradGather43NEON,
	winogradInput45NEON, winogradOutput45NEON, winogradFilter45NEON, winogradSpread45NEON, winogradOverlap45NEON, winogradGather45NEON,
	winogradInput75NEON, winogradOutput75NEON, winogradFilter75NEON, winogradSpread75NEON, winogradOverlap75NEON, winogradGather75NEON,
}

func transformsInUse() *transforms { return &transformsNEON }
