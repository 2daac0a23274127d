//go:build !purego

package kernel

//go:generate go run -C generate ./winograd -out ../winograd_avx2_amd64.s -stubs ../winograd_stubs_amd64.go -pkg kernel

// transformsAVX2 are the functions of the linear maps, by their numbers.
var transformsAVX2 = [...]func(to, from, temporary *float32, toRow, toColumn, toPatch, fromRow, fromColumn, fromPatch, count int){
	winogradInput43AVX2, winogradOutput43AVX2, winogradFilter43AVX2, winogradSpread43AVX2, winogradOverlap43AVX2, winogradGather43AVX2,
	winogradInput45AVX2, winogradOutput45AVX2, winogradFilter45AVX2, winogradSpread45AVX2, winogradOverlap45AVX2, winogradGather45AVX2,
	winogradInput75AVX2, winogradOutput75AVX2, winogradFilter75AVX2, winogradSpread75AVX2, winogradOverlap75AVX2, winogradGather75AVX2,
}

func transformFast[T Float](m *linearMap, to []T, toAt lattice, from []T, fromAt lattice, count int, temporary []T) bool {
	if !fast[T]() || count == 0 {
		return false
	}
	transformsAVX2[m.number](first(to, toAt.reach(m.rows, m.rows, count)), first(from, fromAt.reach(m.columns, m.columns, count)),
		first(temporary, transformTemporary), toAt.row, toAt.column, toAt.patch, fromAt.row, fromAt.column, fromAt.patch, count)
	return true
}

func interleaveFast[T Float](to []T, toRow int, from []T, p planes) bool {
	if !fast[T]() || p.width < lanes {
		return false
	}
	offsets := p.offsets()
	interleaveAVX2(first(to, (p.rows-1)*toRow+p.width*lanes), first(from, p.reach()), &offsets, toRow, p.row, p.rows, p.width)
	return true
}

func separateFast[T Float](to []T, p planes, from []T, fromRow int) bool {
	if !fast[T]() || p.width < lanes {
		return false
	}
	offsets := p.offsets()
	separateAVX2(first(from, (p.rows-1)*fromRow+p.width*lanes), first(to, p.reach()), &offsets, fromRow, p.row, p.rows, p.width)
	return true
}

// offsets are the planes'; lanes without a plane have the last one's.
func (p *planes) offsets() (o [lanes]int) {
	for lane := range o {
		o[lane] = min(lane, p.count-1) * p.plane
	}
	return o
}

func (p *planes) reach() int { return (p.count-1)*p.plane + (p.rows-1)*p.row + p.width }
