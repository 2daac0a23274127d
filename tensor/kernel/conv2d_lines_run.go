package kernel

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

// accumulateFourLines is accumulateLines for four output channels, whose gradients lie in first at
// a distance of each elements.
func accumulateFourLines[T Float](p *linesPlan, images int, padded, dout []T, second, image int, first []T, each int, add bool) {
	if accumulateFourLinesFast(p, images, padded, dout, second, image, first, each, add) {
		return
	}
	accumulateLines(p, images, padded, dout, second, image, first[:each], first[each:][:each], add)
	accumulateLines(p, images, padded, dout[2*second:], second, image, first[2*each:][:each], first[3*each:][:each], add)
}

// accumulateLines computes the gradients of two output channels from some images. In dout, second
// is the stride of channels and image the stride of images. If add is set, it adds the gradients to
// first and other; otherwise it stores them there.
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
