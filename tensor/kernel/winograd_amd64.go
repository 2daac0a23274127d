//go:build !purego

package kernel

//go:generate go run -C generate ./winograd -out ../winograd_avx2_amd64.s -stubs ../winograd_stubs_amd64.go -pkg kernel
//go:generate go run -C generate ./winograd -avx512 -out ../winograd_avx512_amd64.s -stubs ../winograd_avx512_stubs_amd64.go -pkg kernel

// transforms are functions of the linear maps, by their numbers.
type transforms [18]func(to, from, temporary *float32, toRow, toColumn, toPatch, fromRow, fromColumn, fromPatch, count int)

var transformsAVX2 = transforms{
	winogradInput43AVX2, winogradOutput43AVX2, winogradFilter43AVX2, winogradSpread43AVX2, winogradOverlap43AVX2, winogradGather43AVX2,
	winogradInput45AVX2, winogradOutput45AVX2, winogradFilter45AVX2, winogradSpread45AVX2, winogradOverlap45AVX2, winogradGather45AVX2,
	winogradInput75AVX2, winogradOutput75AVX2, winogradFilter75AVX2, winogradSpread75AVX2, winogradOverlap75AVX2, winogradGather75AVX2,
}

var transformsAVX512 = transforms{
	winogradInput43AVX512, winogradOutput43AVX512, winogradFilter43AVX512, winogradSpread43AVX512, winogradOverlap43AVX512, winogradGather43AVX512,
	winogradInput45AVX512, winogradOutput45AVX512, winogradFilter45AVX512, winogradSpread45AVX512, winogradOverlap45AVX512, winogradGather45AVX512,
	winogradInput75AVX512, winogradOutput75AVX512, winogradFilter75AVX512, winogradSpread75AVX512, winogradOverlap75AVX512, winogradGather75AVX512,
}

func transformFast[T Float](m *linearMap, to []T, toAt lattice, from []T, fromAt lattice, count int, temporary []T) bool {
	if !fast[T]() || count == 0 {
		return false
	}
	all := &transformsAVX2
	if inUse == avx512 {
		all = &transformsAVX512
	}
	all[m.number](first(to, toAt.reach(m.rows, m.rows, count)), first(from, fromAt.reach(m.columns, m.columns, count)),
		first(temporary, transformTemporary), toAt.row, toAt.column, toAt.patch, fromAt.row, fromAt.column, fromAt.patch, count)
	return true
}

func interleaveFast[T Float](to []T, toRow int, from []T, p planes) bool {
	if !fast[T]() || p.width < vector {
		return false
	}
	blocks, plane := first(to, (p.rows-1)*toRow+p.width*lanes), first(from, p.reach())
	for lane := 0; lane < lanes; lane += vector {
		offsets := p.offsets(lane)
		if part := offset(blocks, lane); inUse == avx512 {
			interleaveAVX512(part, plane, &offsets, toRow, p.row, p.rows, p.width)
		} else {
			interleaveAVX2(part, plane, &offsets, toRow, p.row, p.rows, p.width)
		}
	}
	return true
}

func separateFast[T Float](to []T, p planes, from []T, fromRow int) bool {
	if !fast[T]() || p.width < vector {
		return false
	}
	blocks, plane := first(from, (p.rows-1)*fromRow+p.width*lanes), first(to, p.reach())
	for lane := 0; lane < p.count; lane += vector {
		offsets := p.offsets(lane)
		if part := offset(blocks, lane); inUse == avx512 {
			separateAVX512(part, plane, &offsets, fromRow, p.row, p.rows, p.width)
		} else {
			separateAVX2(part, plane, &offsets, fromRow, p.row, p.rows, p.width)
		}
	}
	return true
}

// offsets are those of the planes for eight lanes; lanes without a plane have the last one's.
func (p *planes) offsets(lane int) (o [vector]int) {
	for i := range o {
		o[i] = min(lane+i, p.count-1) * p.plane
	}
	return o
}

func (p *planes) reach() int { return (p.count-1)*p.plane + (p.rows-1)*p.row + p.width }
