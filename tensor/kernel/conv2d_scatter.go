package kernel

// scatterPlan computes the gradient of a convolution's input by walking the forward direction: each
// product of a pixel of dout and a tap of the filter is added to the element of dx that the tap
// read. It computes only products that contribute, whereas a convolution of the padded dout also
// multiplies the padding: 2.25 times as many products for 5 x 5 taps over 8 x 8 pixels, four times
// as many for a stride of 2.
//
// A panel's pixels are two halves, each from one line of dout. The sums go to a padded copy of dx,
// [images C paddedH strideW phaseW], whose columns are sorted by their remainder modulo the stride,
// so that the elements to which half a panel adds are contiguous. If that copy would equal dx, the
// sums go to dx itself (direct).
type scatterPlan struct {
	shape          Conv2D
	images         int // of a full tile
	ranges         int // of groups of channels, each a tile
	outH, outW     int // size of dout
	lineW, phaseW  int
	paddedH, plane int
	offsets        []int32 // of taps in the copy, column by column, so that consecutive taps rarely add to the same vectors
	halves         []scatterHalf
	direct         bool
}

// scatterHalf is up to eight consecutive pixels of a line.
type scatterHalf struct {
	source  int32 // offset in dout, from the tile's first image
	target  int32 // offset in the copy, from the tile's first image
	columns int32
}

const halfPanel = panelColumns / 2

// scatterCost and convolveCost estimate the cycles of the two algorithms in AVX2 for each tap,
// image and group of channels, up to a common factor: six for each step of the depth of a full
// register tile, twenty for adding the tile to dx, and three to pack a row of a panel. The choice,
// and with it the order of the sums, does not depend on the instruction set.
func (c Conv2D) scatterCost() float64 {
	halves := c.P() * ceilDiv(c.Q(), halfPanel)
	return float64(halves) / 2 * (6*float64(c.K) + 20) * float64(ceilDiv(c.C, minRows))
}

func (c Conv2D) convolveCost() float64 {
	panels := float64(c.H*c.W) / panelColumns
	return panels * (6*float64(ceilDiv(c.C, minRows)) + 3) * float64(c.K)
}

// scatter prepares BackwardInput by scattering.
func (c Conv2D) scatter() Routine {
	p := scatterPlan{shape: c, outH: c.P(), outW: c.Q()}
	p.paddedH = (p.outH-1)*c.StrideH + (c.R-1)*c.DilationH + 1
	paddedW := (p.outW-1)*c.StrideW + (c.S-1)*c.DilationW + 1
	p.phaseW = ceilDiv(paddedW, c.StrideW)
	p.lineW = p.phaseW * c.StrideW
	p.plane = p.paddedH * p.lineW
	p.direct = c.PadH == 0 && c.PadW == 0 && c.StrideW == 1 && p.paddedH == c.H && p.lineW == c.W && p.outW%halfPanel == 0
	for s := range c.S {
		column := s * c.DilationW
		for r := range c.R {
			p.offsets = append(p.offsets, int32(r*c.DilationH*p.lineW+column%c.StrideW*p.phaseW+column/c.StrideW))
		}
	}
	p.images = max(1, min(tilePixels/(p.outH*p.outW), c.B/tileCount, tileElements/(c.C*p.plane)))
	tiles := ceilDiv(c.B, p.images)
	p.ranges = min(splitRows(c.C).count, ceilDiv(tileCount, tiles))
	for image := range p.images {
		for row := range p.outH {
			for q := 0; q < p.outW; q += halfPanel {
				p.halves = append(p.halves, scatterHalf{
					source:  int32(image*c.K*p.outH*p.outW + row*p.outW + q),
					target:  int32(image*c.C*p.plane + row*c.StrideH*p.lineW + q),
					columns: int32(min(halfPanel, p.outW-q)),
				})
			}
		}
	}
	scratch := maxDepth * panelColumns
	if !p.direct {
		scratch += p.images*c.C*p.plane + slack
	}
	return Routine{
		Phases:    []int{min(c.C, tileCount), tiles * p.ranges},
		Rows:      c.B,
		Unit:      p.images,
		Workspace: c.sizeW(),
		Scratch:   scratch,
		kind:      kindConv2DScatter, plan: &p,
		sizeA: c.sizeY(), sizeB: c.sizeW(), sizeOut: c.sizeX(),
	}
}
