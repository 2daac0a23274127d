package kernel

// blockedImage is the images on one side of a convolution. In blocks, an image is [rows line lanes]
// with zeros around it.
type blockedImage struct {
	channels, height, width int
	padH, padW              int // place in blocks of an image's first element
	line                    int // of blocks
}

func (c Conv2D) blockedX(patch int) blockedImage {
	return blockedImage{c.C, c.H, c.W, c.PadH, c.PadW, ceilDiv(c.Q(), patch)*patch + c.S - 1}
}

func (c Conv2D) blockedY(patch int) blockedImage {
	return blockedImage{c.K, c.P(), c.Q(), 0, 0, ceilDiv(c.Q(), patch) * patch}
}

// row is how many numbers a row of blocks has.
func (b *blockedImage) row() int { return b.line * lanes }

// load makes rows of blocks of up to lanes channels of an image, from the given row of blocks on.
// The zeros around them are there if the blocks held the same rows of another image before.
func load[T Float](b *blockedImage, blocks, x []T, image, channel, row int, surrounded bool) {
	lo, hi := max(0, row-b.padH), min(b.height, row-b.padH+len(blocks)/b.row())
	left, right := b.padW*lanes, (b.padW+b.width)*lanes
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

// store copies rows [first, last) of an image's blocks, the given ones, to where up to lanes
// channels of the image lie.
func store[T Float](b *blockedImage, y, blocks []T, image, channel, first, last int) {
	lo, hi := max(0, first-b.padH), min(b.height, last-b.padH)
	if lo >= hi {
		return
	}
	separate(y[((image*b.channels+channel)*b.height+lo)*b.width:],
		planes{b.height * b.width, b.width, min(lanes, b.channels-channel), hi - lo, b.width},
		blocks[(lo+b.padH-first)*b.row()+b.padW*lanes:], b.row())
}

// patchGroups cuts the patches of a batch into groups: whole images, or bands of one. A band is a
// row of patches, or a band of that height in what patches add to, of which there are more.
type patchGroups struct {
	batch, high, wide int // images, and patches of an image
	bands             int // of an image
	images, rows      int // of a group
}

// groups makes groups of about most patches. An image that has more is cut into bands; a group has
// several smaller ones, but so few that some tiles remain.
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

// part is a group's bands in a batch; lo and hi are the rows of patches that these depend on.
func (g *patchGroups) part(group, batch int) (p part, lo, hi int) {
	across := ceilDiv(g.bands, g.rows)
	p = part{image: group / across * g.images, row: group % across * g.rows}
	p.images = min(g.images, batch-p.image)
	p.rows = min(g.rows, g.bands-p.row)
	return p, max(0, p.row-(g.bands-g.high)), min(g.high, p.row+p.rows)
}

// highest is the most rows of patches of a group.
func (g *patchGroups) highest() int { return min(g.high, g.rows+g.bands-g.high) }

// most is the most patches of a group.
func (g *patchGroups) most() int { return g.images * g.highest() * g.wide }

// apart rounds a distance up to an odd number of cache lines, so that the points of a patch do not
// share a few sets of the caches.
func padStride(elements int) int { return (ceilDiv(elements, panelColumns) | 1) * panelColumns }

// imageTransform is how images become transformed patches: which image, by which map, and where the
// first lanes channels of a patch go. The channels are in panels; the second half of a panel, where
// lanes are that, lies beside the first.
type imageTransform struct {
	blockedImage
	m      *linearMap
	patch  int // rows and columns from one to the next
	wide   int
	to     patchLayout
	panel  int // numbers from a panel to the next
	blocks int // the same of their blocks; 0 where they share them
}

// blocksSize is how many numbers the blocks of lanes channels have for some rows of patches.
func (p *imageTransform) blocksSize(rows int) int { return ((rows-1)*p.patch + p.m.columns) * p.row() }

// transformImages transforms rows [lo, hi) of patches of some images, and panels [first, last) of
// their channels. The blocks of an image begin with the row of patches base; what they have of
// those up to lo is there already.
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
