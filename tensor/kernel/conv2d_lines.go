package kernel

// linesPlan computes the gradient of a filter of five columns from lines of pixels, for four output
// channels at a time, or two at the end. A vector of eight pixels of dout is multiplied by the same
// pixels of x shifted by each of the five columns, and added to five vectors of sums:
//
//	sums[s][0:8] += dout[q : q+8] * x[q+s : q+s+8]   for s = 0 ... 4
//
// Nothing is packed and no vector is wasted on output channels that do not exist, which suits
// convolutions with few output channels, such as a network's first layer. The price is that lines
// of dout are padded to whole vectors.
type linesPlan struct {
	window
	shape   Conv2D
	chunks  int     // ranges of the batch, whose gradients the workspace holds [chunks K C R S]
	ranges  int     // of pairs of output channels, each a tile
	line    int     // length of a line of dout, padded to whole vectors
	offsets []int32 // of (c, r) in the padded copy
	combine int     // tiles of the second phase
}

// lineTaps is the filter width that linesPlan supports, lineVector the pixels of a vector, and
// linesGroup the output channels that are processed together.
const (
	lineTaps   = 5
	lineVector = 8
	linesGroup = 4
)

// linesElements bounds the padded copies of x, and linesImages the images of dout that are
// processed with them, so that both stay in the second-level cache.
const (
	linesElements = 1 << 16
	linesImages   = 16
)

// suitsLines reports whether padding lines wastes less work than padding panels of sixteen output
// channels.
func (c Conv2D) suitsLines() bool {
	if c.S != lineTaps || c.StrideW != 1 || c.DilationW != 1 {
		return false
	}
	lines := float64(ceilDiv(c.Q(), lineVector)*lineVector) / float64(c.Q()) * float64(ceilDiv(c.K, 2)*2)
	return lines < float64(ceilDiv(c.K, panelColumns)*panelColumns)
}

// filterLines prepares BackwardFilter by lines.
func (c Conv2D) filterLines() Routine {
	p := linesPlan{shape: c, line: ceilDiv(c.Q(), lineVector) * lineVector}
	p.window = c.imageWindow()
	p.strideH = c.StrideH
	p.rows = p.outH
	p.paddedH = (p.outH-1)*c.StrideH + (c.R-1)*c.DilationH + 1
	p.paddedW = p.line + lineTaps - 1
	plane := p.paddedH * p.paddedW
	p.images = max(1, min(ceilDiv(2*c.B, tileCount), linesElements/(c.C*plane), linesImages))
	p.chunks = max(1, min(p.window.tiles(), tileCount, partialElements/c.sizeW()))
	p.ranges = min(ceilDiv(tileCount, p.chunks), ceilDiv(c.K, 2))
	p.combine = min(ceilDiv(c.sizeW(), panelColumns), tileCount)
	for channel := range c.C {
		for r := range c.R {
			p.offsets = append(p.offsets, int32(channel*plane+r*c.DilationH*p.paddedW))
		}
	}
	scratch := p.paddedSize() + c.C*c.R*lineTaps
	if p.line != p.outW {
		scratch += linesGroup * p.images * p.outH * p.line
	}
	return Routine{
		Phases:    []int{p.chunks * p.ranges, p.combine},
		Workspace: p.chunks * c.sizeW(),
		Scratch:   scratch,
		Rows:      c.B,
		Unit:      p.images,
		Parts:     p.parts(p.chunks),
		kind:      kindConv2DLines, plan: &p,
		sizeA: c.sizeY(), sizeB: c.sizeX(), sizeOut: c.sizeW(),
	}
}

// reach returns the number of elements of the padded copies that accumulateLines may read.
func (p *linesPlan) reach(images int) int {
	return (images-1)*p.channels*p.paddedH*p.paddedW + int(p.offsets[len(p.offsets)-1]) + (p.outH-1)*p.strideH*p.paddedW + p.line + lineTaps - 1
}
