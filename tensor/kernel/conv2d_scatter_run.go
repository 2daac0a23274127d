package kernel

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
			// Pack panels, of two halves each, until the memory is full. Then multiply each panel
			// by all taps of each group of channels. The products of a tap go to pixels shifted by
			// the tap's offset.
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
