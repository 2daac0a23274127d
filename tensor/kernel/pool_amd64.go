//go:build !purego

package kernel

// maxLineFast computes a line of maxima from the rows that its windows cover.
func maxLineFast[T Float](p *poolPlan, line, rows []T) bool {
	if p.masks == nil || isa != avx512 || !useAssembly[T]() {
		return false
	}
	blocks := ceilDiv(len(line), panelColumns)
	maxLineAVX512(addressOf(line, len(line)), addressOf(rows, len(rows)), len(rows)/p.W, p.W, &p.masks[0], blocks, p.PadW)
	return true
}

// placeLineFast computes the places of these maxima.
func placeLineFast[T Float](p *poolPlan, places []uint8, rows []T) bool {
	if p.masks == nil || isa != avx512 || !useAssembly[T]() {
		return false
	}
	blocks := ceilDiv(len(places), panelColumns)
	placeLineAVX512(&places[0], addressOf(rows, len(rows)), len(rows)/p.W, p.W, &p.masks[0], blocks, p.PadW)
	return true
}
