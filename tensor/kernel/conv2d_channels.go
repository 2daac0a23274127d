package kernel

// channelsPlan computes a pointwise convolution whose panels have sixteen output channels instead
// of sixteen pixels: a register tile is some pixels times one or two panels of channels. The 49
// pixels of an image of 7 x 7 would fill four panels, the last of them with one pixel; as rows of
// tiles they waste nothing. Phase 0 packs the filter's panels, and the results are transposed when
// they are stored. They have the bits of the direct convolution.
type channelsPlan struct {
	shape     Conv2D
	plane     int // pixels of an image
	images    int // of a tile, which reads the filter once for all of them
	ranges    int // ranges of pairs of panels, each a tile
	packTiles int
}

const (
	// channelsImages is the number of images of a filter's packing from which it costs little.
	channelsImages = 16
	// channelsPixels bounds an image, whose results for two panels stay in a first-level cache.
	channelsPixels = 256
	// channelsTogether bounds the images of a tile.
	channelsTogether = 4
	// channelsStore is the cost of transposing a result, channelsStoreBatch the cost in a batch,
	// whose results leave the nearest caches. channelsPacking is the cost of packing pixels
	// relative to the products with them, which the direct convolution has instead.
	channelsStore      = 10
	channelsStoreBatch = 40
	channelsPacking    = 1.05
)

// suitsChannels reports whether panels of channels cost less than panels of pixels, by the products
// for an output, including those of unused columns. Only AVX-512 has no panels that overlap.
func (c Conv2D) suitsChannels() bool {
	if isa != avx512 || !c.isPointwise() || max(c.B, c.FilterImages) < channelsImages || c.H*c.W > channelsPixels {
		return false
	}
	w := c.flattened().imageWindow()
	w.choose(axis{1, 1, 1}, axis{1, 1, 1})
	columns := func(n int) float64 { return float64(ceilDiv(n, panelColumns)*panelColumns) / float64(n) }
	store := float64(channelsStore)
	if c.B >= channelsImages {
		store = channelsStoreBatch
	}
	return float64(c.C)*(channelsPacking*columns(w.images*w.rows*w.outW)-columns(c.K)) > store
}

// isPointwise reports whether an output pixel depends on the same pixel of the input only.
func (c Conv2D) isPointwise() bool {
	return c.R*c.S == 1 && c.StrideH*c.StrideW == 1 && c.PadH+c.PadW == 0 && c.P() == c.H && c.Q() == c.W
}

// channels prepares Forward.
func (c Conv2D) channels() Routine {
	p := channelsPlan{shape: c, plane: c.H * c.W}
	p.images = min(channelsTogether, ceilDiv(c.B, tileCount))
	panels, groups := ceilDiv(c.K, panelColumns), ceilDiv(c.B, p.images)
	p.packTiles = min(panels, tileCount)
	p.ranges = max(1, min(ceilDiv(tileCount, groups), ceilDiv(panels, 2), c.C*c.K*p.plane*p.images/rangeProducts))
	bias := 0
	if c.Bias {
		bias = c.K
	}
	return Routine{
		Phases:      []int{p.packTiles, groups * p.ranges},
		Rows:        c.B,
		Unit:        p.images,
		Preparation: 1,
		Workspace:   panels * panelColumns * c.C,
		Scratch:     2*panelColumns*(p.images*p.plane+panelColumns) + 2*panelColumns,
		kind:        kindConv2DChannels, plan: &p,
		sizeA: c.sizeX(), sizeB: c.sizeW(), sizeBias: bias, sizeOut: c.sizeY(),
	}
}

// packChannels packs some of the filter's panels.
func packChannels[T Float](p *channelsPlan, tile int, w, packed []T) {
	c := p.shape
	lo, hi := splitRange(ceilDiv(c.K, panelColumns), p.packTiles, tile)
	for panel := lo; panel < hi; panel++ {
		k := panel * panelColumns
		packColumns(packed[k*c.C:][:panelColumns*c.C], w[k*c.C:], c.C, c.C, min(panelColumns, c.K-k))
	}
}

// channelsTile computes a range of the output channels of some images.
func channelsTile[T Float](p *channelsPlan, tile, batch int, o Operands[T]) {
	c, width := p.shape, 2*panelColumns
	first := tile / p.ranges * p.images
	last := min(first+p.images, batch)
	lo, hi := splitRange(ceilDiv(c.K, width), p.ranges, tile%p.ranges)
	bias, sums := o.Scratch[:width], o.Scratch[width:]
	block := sums[p.images*p.plane*width:][:panelColumns*width]
	for pair := lo; pair < hi; pair++ {
		k := pair * width
		channels := min(width, c.K-k)
		if c.Bias {
			copy(bias, o.Bias[k:k+channels])
		}
		channelsPair(p, first, last, k, o.A, o.Workspace, bias, sums)
		for image := first; image < last; image++ {
			y := o.Out[(image*c.K+k)*p.plane:][:channels*p.plane]
			storeTransposed(y, p.plane, sums[(image-first)*p.plane*width:], channels, block)
		}
	}
}

// channelsPair multiplies the pixels of images [first, last) by one or two panels of channels, from
// channel k on.
func channelsPair[T Float](p *channelsPlan, first, last, k int, x, packed, bias, sums []T) {
	c, width := p.shape, 2*panelColumns
	blocks := depthBlocks(c.C)
	for n := range blocks {
		k0, k1 := splitRange(c.C, blocks, n)
		f := p.epilogue(n == 0, n == blocks-1)
		for image := first; image < last; image++ {
			a := leftFactor[T]{data: x[(image*c.C+k0)*p.plane:], rowStride: 1, depthStride: p.plane}
			b, to := packed[k*c.C+k0*panelColumns:], sums[(image-first)*p.plane*width:]
			if c.K-k > panelColumns {
				multiplyPair(p.plane, k1-k0, a, b, c.C*panelColumns, to, width, bias, f)
			} else {
				multiply(p.plane, k1-k0, a, b, to, width, bias, f)
			}
		}
	}
}

// epilogue returns the flags for a block of the depth.
func (p *channelsPlan) epilogue(first, last bool) flags {
	kind := NoBias
	if p.shape.Bias {
		kind = BiasColumn
	}
	f := Gemm{Bias: kind, ReLU: p.shape.ReLU}.epilogue(first, last)
	if last && p.shape.Ceiling > 0 {
		f |= ceilingFlags(p.shape.Ceiling)
	}
	return f
}

// storeTransposed stores sums [plane, 2*panelColumns] as y [channels, plane], sixteen pixels at a
// time; the last sixteen overlap those before them.
func storeTransposed[T Float](y []T, plane int, sums []T, channels int, block []T) {
	width := 2 * panelColumns
	for from := 0; from < plane; from += panelColumns {
		pixel := max(0, min(from, plane-panelColumns))
		pixels := min(panelColumns, plane)
		packColumns(block, sums[pixel*width:], width, channels, pixels)
		copyLinesOf(y[pixel:], plane, block, panelColumns, channels, pixels)
	}
}
