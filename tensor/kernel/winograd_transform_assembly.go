//go:build (amd64 || arm64) && !purego

package kernel

// transformFast calls the function of one linear map. Each map has its own, in which the
// coefficients are constants and zeros cost nothing.
func transformFast[T Float](m *linearMap, to []T, toAt patchLayout, from []T, fromAt patchLayout, count int, temporary []T) bool {
	if !useAssembly[T]() || count == 0 {
		return false
	}
	transformsInUse()[m.number](addressOf(to, toAt.reach(m.rows, m.rows, count)), addressOf(from, fromAt.reach(m.columns, m.columns, count)),
		addressOf(temporary, transformTemporary), toAt.row, toAt.column, toAt.patch, fromAt.row, fromAt.column, fromAt.patch, count)
	return true
}

func interleaveFast[T Float](to []T, toRow int, from []T, p planes) bool {
	if !useAssembly[T]() || p.width < vector {
		return false
	}
	blocks, plane := addressOf(to, (p.rows-1)*toRow+p.width*lanes), addressOf(from, p.reach())
	for lane := 0; lane < lanes; lane += vector {
		offsets := p.offsets(lane)
		interleaveBlocks(offset(blocks, lane), plane, &offsets, toRow, p.row, p.rows, p.width)
	}
	return true
}

func separateFast[T Float](to []T, p planes, from []T, fromRow int) bool {
	if !useAssembly[T]() || p.width < vector {
		return false
	}
	blocks, plane := addressOf(from, (p.rows-1)*fromRow+p.width*lanes), addressOf(to, p.reach())
	for lane := 0; lane < p.count; lane += vector {
		offsets := p.offsets(lane)
		separateBlocks(offset(blocks, lane), plane, &offsets, fromRow, p.row, p.rows, p.width)
	}
	return true
}

// offsets returns the offsets of the planes of eight lanes. Lanes without a plane have the last
// plane's.
func (p *planes) offsets(lane int) (o [vector]int) {
	for i := range o {
		o[i] = min(lane+i, p.count-1) * p.plane
	}
	return o
}

// reach returns the number of elements that the planes span.
func (p *planes) reach() int { return (p.count-1)*p.plane + (p.rows-1)*p.row + p.width }
