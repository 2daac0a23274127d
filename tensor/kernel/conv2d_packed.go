package kernel

// packedFilter is the size in elements of a filter that stays in a second-level cache of 2 MiB
// while all panels of a part are multiplied by it.
const packedFilter = 1 << 18

// convPacked convolves the pixels of a part. It packs a few panels of patches at a time, and reads
// each once for all output channels, two panels side by side. A filter of more than packedFilter
// elements is instead read once for all panels, one block of its taps after another.
func convPacked[T Float](p *convPlan, at part, padded, filter, bias, y, scratch []T) {
	blocks := depthBlocks(len(p.taps))
	if len(filter) > packedFilter {
		for block := range blocks {
			convBlocks(p, at, block, block+1, padded, filter, bias, y, scratch)
		}
		return
	}
	convBlocks(p, at, 0, blocks, padded, filter, bias, y, scratch)
}

// convBlocks is convPacked for blocks [first, end) of the taps.
func convBlocks[T Float](p *convPlan, at part, first, end int, padded, filter, bias, y, scratch []T) {
	panels, sums := scratch[:packedElements], scratch[packedElements:p.packedScratch()]
	depth := len(p.taps)
	blocks := depthBlocks(depth)
	pixels := at.images * at.rows * p.outW
	together := 2 * panelColumns * max(1, maxDepth/depth)
	for lo := 0; lo < pixels; lo += together {
		hi := min(lo+together, pixels)
		for block := first; block < end; block++ {
			k0, k1 := splitRange(depth, blocks, block)
			packPixels(p, at, lo, hi, k0, k1, padded, panels)
			a := leftFactor[T]{data: filter[k0:], rowStride: depth, depthStride: 1}
			f := p.epilogue(block == 0, block == blocks-1)
			for j := lo; j < hi; j += 2 * panelColumns {
				convPair(p, at, a, j, min(j+2*panelColumns, hi), k1-k0, panels[(j-lo)*(k1-k0):], sums, bias, y, f)
			}
		}
	}
}

// packPixels packs taps [k0, k1) of pixels [lo, hi) into panels.
func packPixels[T Float](p *convPlan, at part, lo, hi, k0, k1 int, padded, panels []T) {
	depth, plane := k1-k0, p.height*p.width
	for lo < hi {
		if run := at.rows * p.outW; p.inSource && lo/run == (hi-1)/run {
			from := padded[int(p.pixels[lo])+k0*plane:]
			packRows(panels, depth*panelColumns, from, plane, depth, hi-lo)
			return
		}
		place := &p.panels[lo/panelColumns]
		if hi < lo+panelColumns { // the last panel must not read beyond the last pixel
			var last pixelPanel
			pixels := p.pixels[lo:][:panelColumns]
			copy(last.pixels[:], pixels)
			for i := hi - lo; i < panelColumns; i++ {
				last.pixels[i] = pixels[hi-lo-1]
			}
			place = &last
		}
		packWindow(panels, padded, place, p.taps[k0:k1])
		panels, lo = panels[depth*panelColumns:], lo+panelColumns
	}
}

// convPair multiplies the filter by at most two panels of pixels [lo, hi) and stores the result,
// through sums if they are not whole panels of one image.
func convPair[T Float](p *convPlan, at part, filter leftFactor[T], lo, hi, depth int, panels, sums, bias, y []T, f flags) {
	plane, run := p.outH*p.outW, at.rows*p.outW
	y = y[at.image*p.outputs*plane+at.row*p.outW:]
	to, stride := sums, 2*panelColumns
	whole := (hi-lo)%panelColumns == 0 && lo/run == (hi-1)/run
	if whole {
		to, stride = y[lo/run*p.outputs*plane+lo%run:], plane
	}
	pieces := func(visit func(i, n int, y []T)) { // the pixels of each image
		for i := lo; i < hi && !whole; {
			n := min(hi, (i/run+1)*run) - i
			visit(i-lo, n, y[i/run*p.outputs*plane+i%run:])
			i += n
		}
	}
	if f&flagAccumulate != 0 {
		pieces(func(i, n int, y []T) { copyLinesOf(sums[i:], stride, y, plane, p.outputs, n) })
	}
	if hi-lo > panelColumns {
		multiplyPair(p.outputs, depth, filter, panels, depth*panelColumns, to, stride, bias, f)
	} else {
		multiply(p.outputs, depth, filter, panels, to, stride, bias, f)
	}
	pieces(func(i, n int, y []T) { copyLinesOf(y, plane, sums[i:], stride, p.outputs, n) })
}
