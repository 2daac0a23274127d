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
// image and group of channels, up to a common factor: six for each product of a full register tile
// and depth, some for adding to dx, and three to pack a row of a panel. The choice, and with it the
// order of the sums, does not depend on the instruction set.
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

// packFilter packs some channels of the filter. The group of channels that starts with channel c
// starts at packed[c*taps*K] and holds, tap by tap in the order of offsets, the group's channels
// for each k.
func packFilter[T Float](p *scatterPlan, tile int, w, packed []T) {
	s := p.shape
	taps, groups := s.R*s.S, splitRows(s.C)
	lo, hi := splitRange(s.C, min(s.C, tileCount), tile)
	group := 0
	for c := lo; c < hi; c++ {
		first, end := groups.rows(group)
		for c >= end {
			group++
			first, end = groups.rows(group)
		}
		rows := end - first
		to := packed[first*taps*s.K:][:rows*taps*s.K]
		for k := range s.K {
			from := w[(k*s.C+c)*taps:][:taps]
			for column := range s.S {
				for row := range s.R {
					to[((column*s.R+row)*s.K+k)*rows+c-first] = from[row*s.S+column]
				}
			}
		}
	}
}

// scatterTile computes the gradients of some images and one range of channels.
func scatterTile[T Float](p *scatterPlan, tile, batch int, o Operands[T]) {
	s := p.shape
	image := tile / p.ranges * p.images
	images := min(p.images, batch-image)
	groups := splitRows(s.C)
	groupLo, groupHi := splitRange(groups.count, p.ranges, tile%p.ranges)
	channelLo, channelHi := groups.start(groupLo), groups.start(groupHi)
	panels, target := o.Scratch[:maxDepth*panelColumns], o.Out[image*s.C*s.H*s.W:][:images*s.C*s.H*s.W]
	if !p.direct {
		target = o.Scratch[maxDepth*panelColumns:][:images*s.C*p.plane+slack]
	}
	for n := range images {
		clear(target[(n*s.C+channelLo)*p.plane : (n*s.C+channelHi)*p.plane])
	}
	dout := o.A[image*s.K*p.outH*p.outW:]
	halves := p.halves[:images*len(p.halves)/p.images]
	blocks := depthBlocks(s.K)
	for block := range blocks {
		k0, k1 := splitRange(s.K, blocks, block)
		size := (k1 - k0) * panelColumns
		together := 2 * panelBatch(k1-k0)
		for lo := 0; lo < len(halves); lo += together {
			some := halves[lo:min(lo+together, len(halves))]
			// Pack as many panels as fit, two halves each, then multiply each by all taps of each
			// group of channels. The products of a tap go to pixels shifted by the tap's offset.
			for i, half := range some {
				packHalf(panels[i/2*size+i%2*halfPanel:], dout[k0*p.outH*p.outW+int(half.source):], p.outH*p.outW, k1-k0, int(half.columns))
			}
			if len(some)%2 == 1 { // the missing half is zero, so its products add nothing
				packHalf(panels[len(some)/2*size+halfPanel:], dout, 0, k1-k0, 0)
			}
			for group := groupLo; group < groupHi; group++ {
				first, end := groups.rows(group)
				rows := end - first
				filter := o.Workspace[first*len(p.offsets)*s.K+k0*rows:]
				for i := 0; i < len(some); i += 2 {
					left, right := int(some[i].target), int(some[min(i+1, len(some)-1)].target)
					scatterPanel(p, rows, k1-k0, filter, panels[i/2*size:], target[first*p.plane:], left, right)
				}
			}
		}
	}
	if !p.direct {
		cropScatter(p, target, o.Out, image, images, channelLo, channelHi)
	}
}

// packHalf packs half a panel: a line's columns for each depth, padded with zeros.
func packHalf[T Float](panel, source []T, stride, depth, columns int) {
	if columns == halfPanel {
		for k := range depth {
			*(*[halfPanel]T)(panel[k*panelColumns:]) = *(*[halfPanel]T)(source[k*stride:])
		}
		return
	}
	for k := range depth {
		row := panel[k*panelColumns:][:halfPanel]
		clear(row[copy(row, source[k*stride:][:columns]):])
	}
}

// scatterPanel adds the products of a panel and all taps of a group of channels to the copy.
func scatterPanel[T Float](p *scatterPlan, rows, depth int, filter, panel, target []T, left, right int) {
	if scatterFast(p, rows, depth, filter, panel, target, left, right) {
		return
	}
	for tap, offset := range p.offsets {
		var sums [maxRows * panelColumns]T
		multiplyStrided(rows, depth, leftOf(filter[tap*p.shape.K*rows:], rows), panel, &sums)
		for i := range rows {
			for half, at := range [2]int{left, right} {
				to := target[i*p.plane+int(offset)+at:]
				for j, v := range sums[i*panelColumns+half*halfPanel:][:halfPanel] {
					to[j] += v
				}
			}
		}
	}
}

// leftOf returns a left factor that is packed depth by depth.
func leftOf[T Float](packed []T, rows int) leftFactor[T] {
	return leftFactor[T]{data: packed, rowStride: 1, depthStride: rows}
}

// cropScatter copies dx out of the padded copy.
func cropScatter[T Float](p *scatterPlan, padded, dx []T, image, images, channelLo, channelHi int) {
	s := p.shape
	for n := range images {
		for c := channelLo; c < channelHi; c++ {
			from := padded[(n*s.C+c)*p.plane:][:p.plane]
			to := dx[((image+n)*s.C+c)*s.H*s.W:][:s.H*s.W]
			lines := max(0, min(s.H, p.paddedH-s.PadH)) // lines of dx that the copy covers
			clear(to[lines*s.W:])
			from = from[min(s.PadH, p.paddedH)*p.lineW:]
			if cropLines(p, to, from, lines) {
				continue
			}
			for h := range lines {
				cropLine(to[h*s.W:][:s.W], from[h*p.lineW:][:p.lineW], s.PadW, s.StrideW, p.phaseW)
			}
		}
	}
}

// cropLines copies all lines of a plane with one call, if there is assembly for it.
func cropLines[T Float](p *scatterPlan, to, from []T, lines int) bool {
	pad, width := p.shape.PadW, p.shape.W
	switch {
	case lines == 0:
		return true
	case p.shape.StrideW == 1 && pad+width <= p.lineW:
		return copyLinesFast(to, width, from[pad:], p.lineW, lines, width)
	case p.shape.StrideW == 2 && width%2 == 0 && (pad+1)/2+width/2 <= p.phaseW:
		even, odd := from[pad%2*p.phaseW+pad/2:], from[(pad+1)%2*p.phaseW+(pad+1)/2:]
		return zipLinesFast(to, width, even, odd, p.lineW, lines, width/2)
	}
	return false
}

// cropLine copies a line of dx from the padded one, which may be shorter.
func cropLine[T Float](line, padded []T, pad, stride, phase int) {
	if stride == 1 {
		clear(line[copy(line, padded[min(pad, len(padded)):]):])
		return
	}
	for first := range min(stride, len(line)) { // elements of one remainder are contiguous
		w, at := first, (first+pad)/stride
		from := padded[(first+pad)%stride*phase:][min(at, phase):phase]
		for _, v := range from[:min(len(from), ceilDiv(len(line)-w, stride))] {
			line[w] = v
			w += stride
		}
		for ; w < len(line); w += stride {
			line[w] = 0
		}
	}
}
