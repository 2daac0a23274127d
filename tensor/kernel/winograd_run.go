package kernel

import "math"

// winogradFilter transforms the filter for one panel of output channels and a range of input
// channels.
func winogradFilter[T Float](p *winogradPlan, tile int, w, transformed, scratch []T) {
	c, area := p.shape, p.taps*p.taps
	panel := tile / p.filterParts
	lo, hi := splitRange(p.in.channels, p.filterParts, tile%p.filterParts)
	temporary, blocks := scratch[:transformTemporary], scratch[transformTemporary:]
	for half := range panelColumns / lanes {
		k := min(panel*panelColumns+half*lanes, p.out.channels-1)
		count := min(lanes, p.out.channels-k)
		if p.backward {
			interleave(blocks, area*lanes, w[(lo*c.C+k)*area:], planes{area, c.C * area, count, hi - lo, area})
		} else {
			interleave(blocks, 0, w[(k*c.C+lo)*area:], planes{c.C * area, 0, count, 1, (hi - lo) * area})
		}
		transform(&p.filter, transformed[panel*p.points*p.points*p.pointFilter+lo*panelColumns+half*lanes:],
			patchLayout{p.points * p.pointFilter, p.pointFilter, panelColumns},
			blocks, patchLayout{p.taps * lanes, lanes, area * lanes}, hi-lo, temporary)
	}
}

// winogradTile computes one group of patches for a range of panels of output channels.
func winogradTile[T Float](p *winogradPlan, tile, batch int, x, filter, bias, y, scratch []T) {
	at, base, end := p.groups.part(tile/p.ranges, batch)
	points, panels := p.points*p.points, ceilDiv(p.in.channels, panelColumns)
	transformed, scratch := scratch[:points*p.pointIn], scratch[points*p.pointIn:]
	products, scratch := scratch[:points*p.pointOut], scratch[points*p.pointOut:]
	temporary, scratch := scratch[:transformTemporary], scratch[transformTemporary:]
	blocksIn, blocksOut := scratch[:p.blocksIn], scratch[p.blocksIn:]
	first, last := splitRange(ceilDiv(p.out.channels, panelColumns), p.ranges, tile%p.ranges)
	for lo := base; lo < end; lo += p.tileRows {
		s := rowTile{at, base, lo, min(lo+p.tileRows, end), end}
		// Step 1: all input channels of the row tile's patches.
		transformImages(&p.in, at, base, s.lo, s.hi, 0, panels, x, transformed, blocksIn, temporary)
		patches := at.images * (s.hi - s.lo) * p.groups.wide
		for panel, next := first, first; panel < last; panel = next {
			// Steps 2 and 3 for one or two panels of output channels at a time, so that the
			// products of all points stay in cache until they are transformed back.
			next = min(panel+p.columns/panelColumns, last)
			b := filter[panel*points*p.pointFilter:]
			multiplyPoints(p, patches, next-panel, transformed, b, products)
			winogradStore(p, s, panel, next, products, bias, y, blocksOut, temporary)
		}
	}
}

// rowTile is rows [lo, hi) of a group's rows of patches, which are [base, end).
type rowTile struct {
	part
	base, lo, hi, end int
}

// multiplyPoints multiplies, at each point, some rows of a group's patches by one or two panels.
func multiplyPoints[T Float](p *winogradPlan, rows, panels int, a, b, c []T) {
	if multiplyPointsFast(p, rows, panels, a, b, c) {
		return
	}
	points, depth := p.points*p.points, p.in.channels
	for point := range points {
		from := leftFactor[T]{data: a[point*p.pointIn:], rowStride: p.strideIn, depthStride: 1}
		if b, c := b[point*p.pointFilter:], c[point*p.pointOut:]; panels > 1 {
			multiplyPair(rows, depth, from, b, points*p.pointFilter, c, p.columns, nil, 0)
		} else {
			multiply(rows, depth, from, b, c, p.columns, nil, 0)
		}
	}
}

// winogradStore transforms the products of panels [panel, end) of output channels back and stores
// the rows that are complete, to which no later row tile adds.
func winogradStore[T Float](p *winogradPlan, s rowTile, panel, end int, products, bias, y, blocks, temporary []T) {
	from, to := patchLayout{p.points * p.pointOut, p.pointOut, p.columns}, patchLayout{p.out.row(), lanes, p.patch * lanes}
	// Rows [first, last) of the output are complete. Backward, patches overlap in the output, and
	// the rows below last still wait for the next row tile, except at the end of the group.
	first, last := max(s.lo, s.row)*p.patch, s.hi*p.patch
	if s.hi == s.end {
		last = (s.row + s.rows) * p.patch
	}
	begun := 0 // elements of the blocks to which earlier row tiles added
	if s.lo > s.base {
		begun = p.outSize(s.lo - s.base)
	}
	for k := panel * panelColumns; k < min(end*panelColumns, p.out.channels); k += lanes {
		setEpilogue(p, temporary, bias, k)
		blocks := blocks[k/lanes*p.blocksOut:]
		for n := range s.images {
			if p.backward {
				clear(blocks[begun:p.outSize(s.hi-s.base)])
			}
			for row := range s.hi - s.lo {
				transform(p.back, blocks[(s.lo-s.base+row)*p.patch*p.out.row():], to,
					products[(n*(s.hi-s.lo)+row)*p.groups.wide*p.columns+k-panel*panelColumns:], from, p.groups.wide, temporary)
			}
			store(&p.out, y, blocks[(first-s.base*p.patch)*p.out.row():], s.image+n, k, first, last)
		}
	}
}

// setEpilogue stores the biases of up to lanes output channels and their lower (0 for the ReLU) and
// upper bounds where finishBias reads them.
func setEpilogue[T Float](p *winogradPlan, temporary, bias []T, k int) {
	clear(temporary[:lanes])
	if p.shape.Bias {
		copy(temporary[:lanes], bias[k:])
	}
	floor := T(math.Inf(-1))
	if p.shape.ReLU {
		floor = 0
	}
	ceiling := T(math.Inf(1))
	if p.shape.Ceiling > 0 {
		ceiling = T(p.shape.Ceiling)
	}
	for i := range lanes {
		temporary[lanes+i], temporary[2*lanes+i] = floor, ceiling
	}
}

// transformImages transforms rows [lo, hi) of patches of some images, and panels [first, last) of
// their channels. The blocks of an image start at row base of patches; if lo > base, they already
// hold the rows that the row tiles before lo have loaded.
func transformImages[T Float](p *imageTransform, at part, base, lo, hi, first, last int, x, transformed, blocks, temporary []T) {
	from, row := patchLayout{p.row(), lanes, p.patch * lanes}, p.row()
	loaded, needed, size := 0, p.blocksSize(hi-base)/row, p.blocksSize(hi-base)
	if lo > base {
		loaded = p.blocksSize(lo-base) / row
	}
	if p.blocks > 0 {
		size = p.blocks / (panelColumns / lanes)
	}
	for n := range at.images {
		for panel := first; panel < last; panel++ {
			channel, blocks := panel*panelColumns, blocks[(panel-first)*p.blocks:]
			halves := ceilDiv(min(panelColumns, p.channels-channel), lanes)
			surrounded := loaded == 0 && (n > 0 || p.blocks == 0 && panel > first)
			for half := range halves {
				rows := blocks[half*size+loaded*row : half*size+needed*row]
				load(&p.blockedImage, rows, x, at.image+n, channel+half*lanes, base*p.patch+loaded, surrounded)
			}
			for patches := range hi - lo {
				for half := range halves {
					transform(p.m, transformed[(n*(hi-lo)+patches)*p.wide*p.to.patch+(panel-first)*p.panel+half*lanes:], p.to,
						blocks[half*size+(lo-base+patches)*p.patch*row:], from, p.wide, temporary)
				}
			}
		}
	}
}

// load fills rows of blocks with up to lanes channels of an image, starting with the given row of
// blocks. If surrounded is set, the zeros around the image are already there, from the same rows of
// another image.
func load[T Float](b *blockedImage, blocks, x []T, image, channel, row int, surrounded bool) {
	lo, hi := max(0, row-b.padH), min(b.height, row-b.padH+len(blocks)/b.row())
	left, right := b.padW*lanes, (b.padW+b.width)*lanes
	// Only the zeros around the image need clearing; if there are none, nothing does.
	if !surrounded && (hi-lo < len(blocks)/b.row() || right-left < b.row()) {
		clear(blocks)
	}
	if lo >= hi {
		return
	}
	first := lo + b.padH - row
	interleave(blocks[first*b.row()+left:], b.row(), x[((image*b.channels+channel)*b.height+lo)*b.width:],
		planes{b.height * b.width, b.width, min(lanes, b.channels-channel), hi - lo, b.width})
}

// store copies rows [first, last) of an image's blocks to up to lanes channels of the image.
func store[T Float](b *blockedImage, y, blocks []T, image, channel, first, last int) {
	lo, hi := max(0, first-b.padH), min(b.height, last-b.padH)
	if lo >= hi {
		return
	}
	separate(y[((image*b.channels+channel)*b.height+lo)*b.width:],
		planes{b.height * b.width, b.width, min(lanes, b.channels-channel), hi - lo, b.width},
		blocks[(lo+b.padH-first)*b.row()+b.padW*lanes:], b.row())
}
