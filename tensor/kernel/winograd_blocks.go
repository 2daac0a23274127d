package kernel

// blockedImage is the images on one side of a convolution. In blocks, an image is stored as [rows
// line lanes] with zeros around it (the layout nChw8c or nChw16c of oneDNN, one block of channels
// at a time), so that a vector holds the same pixel of lanes channels.
type blockedImage struct {
	channels, height, width int
	padH, padW              int // position in blocks of an image's first element
	line                    int // columns of a row of blocks
}

func (c Conv2D) blockedX(patch int) blockedImage {
	return blockedImage{c.C, c.H, c.W, c.PadH, c.PadW, ceilDiv(c.Q(), patch)*patch + c.S - 1}
}

func (c Conv2D) blockedY(patch int) blockedImage {
	return blockedImage{c.K, c.P(), c.Q(), 0, 0, ceilDiv(c.Q(), patch) * patch}
}

// row returns the number of elements of a row of blocks.
func (b *blockedImage) row() int { return b.line * lanes }

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

// patchGroups divides the patches of a batch into groups: whole images, or bands of one image. A
// band is a row of patches. Where patches overlap in the output, it is a band of that height in the
// output, of which there is one more.
type patchGroups struct {
	batch, high, wide int // images, and patches of an image
	bands             int // of an image
	images, rows      int // of a group
}

// groups makes groups of about most patches. An image with more patches is divided into bands;
// smaller images are grouped, but so that at least least tiles remain.
func (c Conv2D) groups(patch, extraBands, most, least int) patchGroups {
	g := patchGroups{batch: c.B, high: ceilDiv(c.P(), patch), wide: ceilDiv(c.Q(), patch), images: 1}
	g.bands = g.high + extraBands
	g.rows = g.bands
	if image := g.high * g.wide; image <= most {
		g.images = max(1, min(most/image, c.B/least))
	} else {
		g.rows = max(1, min(g.bands, most/g.wide))
	}
	return g
}

func (g *patchGroups) count() int { return ceilDiv(g.batch, g.images) * ceilDiv(g.bands, g.rows) }

// part returns a group's bands in a batch; [lo, hi) are the rows of patches on which they depend.
func (g *patchGroups) part(group, batch int) (p part, lo, hi int) {
	across := ceilDiv(g.bands, g.rows)
	p = part{image: group / across * g.images, row: group % across * g.rows}
	p.images = min(g.images, batch-p.image)
	p.rows = min(g.rows, g.bands-p.row)
	return p, max(0, p.row-(g.bands-g.high)), min(g.high, p.row+p.rows)
}

// highest returns the maximum number of rows of patches of a group.
func (g *patchGroups) highest() int { return min(g.high, g.rows+g.bands-g.high) }

// most returns the maximum number of patches of a group.
func (g *patchGroups) most() int { return g.images * g.highest() * g.wide }

// padStride rounds a distance up to an odd number of cache lines. The points of a patch lie this
// far apart; if the distance were a power of two, all of them would compete for a few cache sets.
func padStride(elements int) int { return (ceilDiv(elements, panelColumns) | 1) * panelColumns }

// imageTransform turns images into transformed patches: it holds the images, the map, and the
// position of the first lanes channels of a patch. Channels are in panels; if a panel is two groups
// of lanes, the second lies next to the first.
type imageTransform struct {
	blockedImage
	m      *linearMap
	patch  int // rows and columns from one patch to the next
	wide   int
	to     patchLayout
	panel  int // elements from a panel to the next
	blocks int // elements from a panel's blocks to the next panel's; 0 if panels share them
}

// blocksSize returns the number of elements of the blocks of lanes channels for some rows of
// patches.
func (p *imageTransform) blocksSize(rows int) int { return ((rows-1)*p.patch + p.m.columns) * p.row() }

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
