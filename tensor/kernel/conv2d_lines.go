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

// linesTile sums the gradients of one range of pairs over one chunk of the batch.
func linesTile[T Float](p *linesPlan, tile int, o Operands[T]) {
	lo, hi := splitRange(p.window.tiles(), p.chunks, tile%p.chunks)
	size := p.shape.sizeW()
	linesSums(p, lo, hi, p.batch, tile/p.chunks, o.Workspace[tile%p.chunks*size:][:size], o)
}

// linesSums sums one range of pairs over tiles [partLo, partHi) of a batch.
func linesSums[T Float](p *linesPlan, partLo, partHi, batch, ofPairs int, partial []T, o Operands[T]) {
	s := p.shape
	pairLo, pairHi := splitRange(ceilDiv(s.K, 2), p.ranges, ofPairs)
	each := len(p.offsets) * lineTaps
	padded := o.Scratch[:p.paddedSize()]
	spare := o.Scratch[len(padded):][:each]
	copies := o.Scratch[len(padded)+each:]
	for part := partLo; part < partHi; part++ {
		at, add := p.part(part, batch), o.Add || part > partLo
		x := padded
		if p.exact() {
			x = o.B[at.image*s.C*s.H*s.W:][:at.images*s.C*s.H*s.W] // no padding: read x itself
		} else {
			pad(&p.window, padded, o.B, at.image, at.images, 0, s.C, 0)
			clear(padded[at.images*s.C*p.paddedH*p.paddedW:])
		}
		for k, hi := 2*pairLo, min(2*pairHi, s.K); k < hi; {
			group := linesGroup
			if k+group > hi {
				group = 2
			}
			dout := o.A[(at.image*s.K+k)*p.outH*p.outW:]
			second, image := p.outH*p.outW, s.K*p.outH*p.outW
			if k+1 == s.K { // an odd channel at the end is its own partner
				second = 0
			}
			if p.line != p.outW { // zeros behind each line make its last vector whole
				image = group * p.outH * p.line
				widenLines(p, copies, dout, at.images, group, second)
				dout, second = copies, p.outH*p.line
			}
			switch to := partial[k*each:]; {
			case group == linesGroup:
				accumulateFourLines(p, at.images, x, dout, second, image, to, each, add)
			case k+1 < s.K:
				accumulateLines(p, at.images, x, dout, second, image, to[:each], to[each:][:each], add)
			default:
				accumulateLines(p, at.images, x, dout, second, image, to[:each], spare, add)
			}
			k += group
		}
	}
}

// widenLines copies the lines of some channels, padded with zeros: [images channels P line].
func widenLines[T Float](p *linesPlan, copies, dout []T, images, channels, second int) {
	area := p.outH * p.outW
	for n := range images {
		for k := range channels {
			from := dout[n*p.shape.K*area+k*second:][:area]
			to := copies[(channels*n+k)*p.outH*p.line:][:p.outH*p.line]
			for row := range p.outH {
				line := to[row*p.line:][:p.line]
				clear(line[copy(line, from[row*p.outW:][:p.outW]):])
			}
		}
	}
}

// accumulateFourLines is accumulateLines for four output channels, whose gradients are each
// elements apart.
func accumulateFourLines[T Float](p *linesPlan, images int, padded, dout []T, second, image int, first []T, each int, add bool) {
	if accumulateFourLinesFast(p, images, padded, dout, second, image, first, each, add) {
		return
	}
	accumulateLines(p, images, padded, dout, second, image, first[:each], first[each:][:each], add)
	accumulateLines(p, images, padded, dout[2*second:], second, image, first[2*each:][:each], first[3*each:][:each], add)
}

// accumulateLines computes the gradients of two output channels, whose lines of dout are second
// elements apart, from some images. It adds them to first and other if add is set, otherwise it
// stores them there.
func accumulateLines[T Float](p *linesPlan, images int, padded, dout []T, second, image int, first, other []T, add bool) {
	if accumulateLinesFast(p, images, padded, dout, second, image, first, other, add) {
		return
	}
	for half, out := range [2][]T{first, other} {
		for i, offset := range p.offsets {
			var sums [lineTaps]T
			for n := range images {
				for row := range p.outH {
					x := padded[n*p.channels*p.paddedH*p.paddedW+int(offset)+row*p.strideH*p.paddedW:][:p.line+lineTaps-1]
					for q, v := range dout[n*image+half*second+row*p.line:][:p.line] {
						at := x[q:][:lineTaps]
						for t, u := range at {
							sums[t] += v * u
						}
					}
				}
			}
			to := out[i*lineTaps:][:lineTaps]
			for t, v := range sums {
				if add {
					v = to[t] + v
				}
				to[t] = v
			}
		}
	}
}

// combineLines adds the gradients of the chunks.
func combineLines[T Float](p *linesPlan, tile int, workspace, dw []T) {
	lo, hi := splitRange(len(dw), p.combine, tile)
	SumRows(dw[lo:hi], workspace[lo:], p.chunks, len(dw))
}
