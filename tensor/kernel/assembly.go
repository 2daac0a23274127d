//go:build (amd64 || arm64) && !purego

package kernel

import (
	"math"
	"unsafe"
)

// useAssembly reports whether T runs in assembly: float32, or a type defined from it, if the
// processor has one of the instruction sets.
func useAssembly[T Float]() bool {
	var zero T
	return isa > portableGo && unsafe.Sizeof(zero) == 4
}

// addressOf returns the address of the first of n elements. It panics if the slice has fewer: the
// assembly checks nothing, so every slice must pass through here with the number of elements that
// the assembly reaches.
func addressOf[T Float](x []T, n int) *float32 {
	return (*float32)(unsafe.Pointer(unsafe.SliceData(x[:n])))
}

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

// operandAddresses returns the addresses of what a run of tiles reads and writes, except the right
// factor.
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

// packColumnsFast transposes eight columns at a time. A depth that is not a multiple of eight is
// completed by a vector that overlaps the one before it.
func packColumnsFast[T Float](panel, source []T, stride, depth, columns int) bool {
	if !useAssembly[T]() || depth < vector {
		return false
	}
	from := addressOf(source, (columns-1)*stride+depth)
	to := addressOf(panel, depth*panelColumns)
	whole := depth &^ (vector - 1)
	rest := depth - vector // the last eight, of which some are packed a second time
	for half := range 2 {
		var offsets [vector]int
		for j := range offsets {
			offsets[j] = min(half*vector+j, columns-1) * stride
		}
		part := offset(to, half*vector)
		transpose(part, panelColumns, from, &offsets, whole)
		if whole < depth {
			transpose(offset(part, rest*panelColumns), panelColumns, offset(from, rest), &offsets, vector)
		}
	}
	return true
}

// packGroupFast packs the depth except for the last few steps, whose vectors would be stored beyond
// the group, and returns the number of steps it packed.
func packGroupFast[T Float](to, from []T, rows, depth int) int {
	if !useAssembly[T]() || depth < 2*vector {
		return 0
	}
	whole := (depth - vector + 1) &^ (vector - 1)
	var offsets [vector]int
	for j := range offsets {
		offsets[j] = min(j, rows-1) * depth
	}
	transpose(addressOf(to, (whole-1)*minRows+vector), minRows, addressOf(from, rows*depth), &offsets, whole)
	return whole
}

func offset(p *float32, elements int) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*elements))
}

// packWindowFast copies runs of contiguous pixels, or gathers where a half has more than two runs.
func packWindowFast[T Float](panel, padded []T, p *pixelPanel, taps []int32) bool {
	if !useAssembly[T]() {
		return false
	}
	depth := len(taps)
	to := addressOf(panel, depth*panelColumns)
	from := addressOf(padded, int(p.pixels[panelColumns-1])+int(taps[depth-1])+1)
	if p.simple {
		windowRuns(to, from, &p.runs, &taps[0], depth)
	} else {
		windowGather(to, from, &p.pixels, &taps[0], depth)
	}
	return true
}

// maxPlanesFast pools consecutive planes.
func maxPlanesFast[T Float](p *poolPlan, x, y []T, planes int) bool {
	if p.table == nil || planes == 0 || !useAssembly[T]() {
		return false
	}
	floor := float32(math.Inf(-1))
	if p.ReLU {
		floor = 0
	}
	in, out := p.H*p.W, p.outH*p.outW
	upper, lower, py := addressOf(x, planes*in), addressOf(x[p.W:], planes*in-p.W), addressOf(y, planes*out)
	maxPlanes(upper, lower, py, &p.table[0], len(p.table)/4, planes, in, out, floor)
	return true
}

func maxIndicesFast[T Float](q *Windows2x2, places []uint8, x []T) bool {
	if q.table == nil || len(x) == 0 || !useAssembly[T]() {
		return false
	}
	in := q.height * q.width
	upper, lower := addressOf(x, len(x)), addressOf(x[q.width:], len(x)-q.width)
	notePlaces(upper, lower, &places[0], &q.table[0], len(q.table)/4, len(x)/in, in, in/4)
	return true
}

func unpoolGradFast[T Float](q *Windows2x2, dx, dout []T, places []uint8, mask uint8) bool {
	if q.table == nil || len(dx) == 0 || !useAssembly[T]() {
		return false
	}
	in := q.height * q.width
	upper, lower := addressOf(dx, len(dx)), addressOf(dx[q.width:], len(dx)-q.width)
	spreadPlaces(upper, lower, addressOf(dout, len(dout)), &places[0], &q.table[0], len(q.table)/4, len(dx)/in, in, in/4, uint32(mask))
	return true
}

// scatterFast multiplies one panel by all taps of a group of channels and adds the products to the
// padded copy, in one call.
func scatterFast[T Float](p *scatterPlan, rows, depth int, filter, panel, target []T, left, right int) bool {
	if !useAssembly[T]() {
		return false
	}
	taps := len(p.offsets)
	every := p.shape.K * rows
	filters := addressOf(filter, (taps-1)*every+depth*rows)
	pixels := addressOf(panel, depth*panelColumns)
	reach := (rows-1)*p.plane + int(p.offsets[taps-1]) + halfPanel
	c0, c1 := addressOf(target[left:], reach), addressOf(target[right:], reach)
	skip := every - depth*rows
	scatter(rows, depth, taps, filters, skip, pixels, c0, c1, &p.offsets[0], p.plane)
	return true
}

// accumulateLinesFast is accumulateLines in assembly, with one call for all offsets.
func accumulateLinesFast[T Float](p *linesPlan, images int, padded, dout []T, second, image int, one, other []T, add bool) bool {
	if !useAssembly[T]() {
		return false
	}
	count, rows := len(p.offsets), p.outH
	xRow, xImage := p.strideH*p.paddedW, p.channels*p.paddedH*p.paddedW
	pd := addressOf(dout, (images-1)*image+second+rows*p.line)
	px := addressOf(padded, p.reach(images))
	p1, p2 := addressOf(one, count*lineTaps), addressOf(other, count*lineTaps)
	multiplyLines(pd, second, image, px, &p.offsets[0], count, images, rows, p.line, xRow, xImage, p1, p2, add)
	return true
}

// transforms are the functions of the linear maps, by number.
type transforms [18]func(to, from, temporary *float32, toRow, toColumn, toPatch, fromRow, fromColumn, fromPatch, count int)

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
