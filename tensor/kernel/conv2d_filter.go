package kernel

// filterPlan cuts the gradient of the filter into chunks of images, whose sums
// are kept apart in the workspace, times ranges of taps.
type filterPlan struct {
	chunks  int // ranges of image groups; the workspace holds one partial gradient for each
	ranges  int // of groups of taps
	columns int // K rounded up to whole panels
	combine int // tiles of the second phase
}

// partialElements bounds the partial gradients: 512 Ki float32 are 2 MiB.
const partialElements = 1 << 19

// BackwardFilter makes the gradient with respect to w ready,
//
//	dw[k c r s] = sum_{b p q} dout[b k p q]
//	              x[b c p*StrideH+r*DilationH-PadH q*StrideW+s*DilationW-PadW].
//
// Operands: A is dout [B K P Q], B is x [B C H W], Out is dw [K C R S]. Phase 0
// sums over chunks of the batch, phase 1 adds the chunks in order.
func (c Conv2D) BackwardFilter() (Routine, error) {
	if err := c.validateBackward(); err != nil {
		return Routine{}, err
	}
	if a := c.suitsWinogradFilter(); a != nil {
		return c.filterWinograd(a), nil
	}
	if c.suitsLines() {
		return c.filterLines(), nil
	}
	return c.filterPanels(), nil
}

// filterPanels makes BackwardFilter ready with panels of output channels.
func (c Conv2D) filterPanels() Routine {
	p := convPlan{shape: c}
	p.window = c.imageWindow()
	vertical, horizontal := c.axes()
	p.chooseDepth(vertical, horizontal)
	p.build(vertical, horizontal, c.K)

	taps := len(p.taps)
	f := filterPlan{columns: ceilDiv(c.K, panelColumns) * panelColumns}
	f.chunks = max(1, min(p.tiles(), tileCount, partialElements/(taps*f.columns)))
	f.ranges = min(ceilDiv(tileCount, f.chunks), ceilDiv(tapGroups(taps), 4))
	f.combine = min(taps, tileCount)
	p.filter = f
	depth := min(p.images*p.rows*p.outW, maxDepth)
	return Routine{
		Phases:    []int{f.chunks * f.ranges, f.combine},
		Workspace: f.chunks * taps * f.columns,
		Scratch:   p.paddedSize() + depth*panelColumns,
		kind:      kindConv2DBackwardFilter,
		sizeA:     c.sizeY(), sizeB: c.sizeX(), sizeOut: c.sizeW(),
		conv: p,
	}
}

// chooseDepth sets images and rows so that a padded copy serves one panel's
// depth or more: the pixels are what is summed over.
func (w *window) chooseDepth(vertical, horizontal axis) {
	w.choose(vertical, horizontal)
	if pixels := w.outH * w.outW; w.rows == w.outH {
		w.images = max(1, min(w.images, maxDepth/pixels))
	}
}

// filterTile adds up one range of taps over one chunk of the batch into the
// chunk's partial gradient [taps, columns].
func filterTile[T Float](p *convPlan, tile int, o Operands[T]) {
	f := p.filter
	taps := len(p.taps)
	partLo, partHi := cut(p.tiles(), f.chunks, tile%f.chunks)
	groupLo, groupHi := cut(tapGroups(taps), f.ranges, tile/f.chunks)
	tapLo, _ := cut(taps, tapGroups(taps), groupLo)
	_, tapHi := cut(taps, tapGroups(taps), groupHi-1)
	area := p.shape.R * p.shape.S
	partial := o.Workspace[tile%f.chunks*taps*f.columns:][:taps*f.columns]
	padded := o.Scratch[:p.paddedSize()]
	panel := o.Scratch[len(padded):]
	for n := partLo; n < partHi; n++ {
		at := p.part(n)
		pad(&p.window, padded, o.B, at.image, at.images, tapLo/area, ceilDiv(tapHi, area), at.row)
		pixels := at.images * at.rows * p.outW
		blocks := depthBlocks(pixels)
		for block := range blocks {
			lo, hi := cut(pixels, blocks, block)
			accumulate := n > partLo || block > 0
			for k := 0; k < p.shape.K; k += panelColumns {
				packGradient(p, at, lo, hi, k, o.A, panel)
				for group := groupLo; group < groupHi; group++ {
					i, end := cut(taps, tapGroups(taps), group)
					multiplyTable(padded, p.taps[i:end], p.pixels[lo:hi], panel,
						partial[i*f.columns+k:], f.columns, accumulate)
				}
			}
		}
	}
}

// packGradient packs the pixels [lo, hi) of a part for sixteen output channels
// from k on: one row of the panel per pixel.
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

// combineFilter adds the partial gradients of a range of taps in the chunks'
// order and transposes them to [K, taps].
func combineFilter[T Float](p *convPlan, tile int, workspace, dw []T) {
	f := p.filter
	taps := len(p.taps)
	lo, hi := cut(taps, f.combine, tile)
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
