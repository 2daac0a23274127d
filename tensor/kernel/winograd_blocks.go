package kernel

// blockedImage describes the images on one side of a convolution. In blocks, an image is stored as
// [rows line lanes] with zeros around it (the layout nChw8c or nChw16c of oneDNN, one block of
// channels at a time), so that a vector holds the same pixel of lanes channels.
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

// patchGroups divides the patches of a batch into groups: whole images, or bands of one image. A
// band is a row of patches. In the gradient of the input, where patches overlap in the output, a
// band is instead a band of output rows of a patch's height, and there is one more of them.
type patchGroups struct {
	batch, high, wide int // images, and patches of an image
	bands             int // of an image
	images, rows      int // of a group
}

// groups makes groups of about most patches. An image with more patches is divided into bands;
// smaller images are grouped, but at most B/least of them, so that enough tiles remain.
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
