package kernel

// tapTiles returns the number of consecutive taps that share an address, and the maximum number of
// taps of a register tile. In AVX-512 a row of three or five taps shares one address register,
// which leaves registers for more rows.
func (c Conv2D) tapTiles() (together, most int) {
	if isa == avx512 && c.DilationW == 1 {
		switch c.S {
		case 3:
			return 3, 9
		case 5:
			return 5, 5
		}
	}
	return 1, tableRows
}

// filterPanels prepares BackwardFilter as a product: patches of x, transposed, times panels of
// output channels of dout. The depth is the pixels of the batch.
func (c Conv2D) filterPanels() Routine {
	p := convPlan{shape: c}
	p.window = c.imageWindow()
	vertical, horizontal := c.axes()
	p.chooseDepth(vertical, horizontal)
	p.build(vertical, horizontal, c.K)

	taps := len(p.taps)
	f := filterPlan{columns: ceilDiv(c.K, panelColumns) * panelColumns}
	// Chunks of the batch are independent tiles. If their partial gradients would take too much
	// memory, there are fewer chunks, and ranges of taps provide the tiles instead.
	f.chunks = max(1, min(p.tiles(), tileCount, partialElements/(taps*f.columns)))
	together, most := c.tapTiles()
	f.together, f.groups = together, ceilDiv(taps/together, most)
	f.ranges = min(ceilDiv(tileCount, f.chunks), ceilDiv(f.groups, 4))
	f.combine = min(taps, tileCount)
	p.filter = f
	depth := min(p.images*p.rows*p.outW, maxDepth)
	return Routine{
		Phases:    []int{f.chunks * f.ranges, f.combine},
		Workspace: f.chunks * taps * f.columns,
		Scratch:   p.paddedSize() + depth*panelColumns,
		Rows:      c.B,
		Unit:      p.images,
		Parts:     p.parts(f.chunks),
		kind:      kindConv2DBackwardFilter, plan: &p,
		sizeA: c.sizeY(), sizeB: c.sizeX(), sizeOut: c.sizeW(),
	}.withoutParts()
}

// chooseDepth sets images and rows as choose does, but several images only if their pixels fit into
// one panel's depth: here the sum runs over pixels.
func (w *window) chooseDepth(vertical, horizontal axis) {
	w.choose(vertical, horizontal)
	if pixels := w.outH * w.outW; w.rows == w.outH {
		w.images = max(1, min(w.images, maxDepth/pixels))
	}
}

// filterTile sums one range of taps over one chunk of the batch.
func filterTile[T Float](p *convPlan, tile int, o Operands[T]) {
	f := p.filter
	lo, hi := splitRange(p.tiles(), f.chunks, tile%f.chunks)
	size := len(p.taps) * f.columns
	filterSums(p, lo, hi, p.batch, tile/f.chunks, o.Workspace[tile%f.chunks*size:][:size], o)
}

// filterSums sums one range of taps over tiles [partLo, partHi) of a batch into a partial gradient
// [taps, columns].
func filterSums[T Float](p *convPlan, partLo, partHi, batch, ofTaps int, partial []T, o Operands[T]) {
	f := p.filter
	taps := len(p.taps)
	groupLo, groupHi := splitRange(f.groups, f.ranges, ofTaps)
	tapLo, tapHi := f.group(groupLo, groupHi, taps)
	area := p.shape.R * p.shape.S
	padded := o.Scratch[:p.paddedSize()]
	panel := o.Scratch[len(padded):]
	for n := partLo; n < partHi; n++ {
		at := p.part(n, batch)
		// Only the channels of this range of taps are needed.
		pad(&p.window, padded, o.B, at.image, at.images, tapLo/area, ceilDiv(tapHi, area), at.row)
		pixels := at.images * at.rows * p.outW
		blocks := depthBlocks(pixels)
		for block := range blocks {
			lo, hi := splitRange(pixels, blocks, block)
			accumulate := o.Add || n > partLo || block > 0
			for k := 0; k < p.shape.K; k += panelColumns {
				// A panel of dout is packed once and multiplied by all taps of the range. The left
				// factor, x at every tap and pixel, is read in place through the window's tables.
				packGradient(p, at, lo, hi, k, o.A, panel)
				for group := groupLo; group < groupHi; group++ {
					i, end := f.group(group, group+1, taps)
					multiplyTaps(padded, p.taps[i:end], f.together, p.pixels[lo:hi], panel,
						partial[i*f.columns+k:], f.columns, accumulate)
				}
			}
		}
	}
}

// packGradient packs pixels [lo, hi) of a part for sixteen output channels starting at k: one row
// of the panel per pixel.
func packGradient[T Float](p *convPlan, at part, lo, hi, k int, dout, panel []T) {
	run := at.rows * p.outW
	plane := p.outH * p.outW
	columns := min(panelColumns, p.shape.K-k)
	for i := lo; i < hi; {
		n := min(hi-i, run-i%run)
		from := ((at.image+i/run)*p.shape.K+k)*plane + at.row*p.outW + i%run
		packColumns(panel[(i-lo)*panelColumns:], dout[from:], plane, n, columns)
		i += n
	}
}

// combineFilter adds the partial gradients of a range of taps, in the order of the chunks, and
// transposes them to [K, taps].
func combineFilter[T Float](p *convPlan, tile int, workspace, dw []T) {
	f := p.filter
	taps := len(p.taps)
	lo, hi := splitRange(taps, f.combine, tile)
	for k := range p.shape.K {
		row := dw[k*taps:][:taps]
		for tap := lo; tap < hi; tap++ {
			at := tap*f.columns + k
			sum := workspace[at]
			for chunk := 1; chunk < f.chunks; chunk++ {
				at += taps * f.columns
				sum += workspace[at]
			}
			row[tap] = sum
		}
	}
}
