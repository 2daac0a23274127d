package kernel

// planeTaps computes the sums of tapsPlan directly from the source, without a copy, for groups that
// read one plane and for small square filters. For a block of sixteen columns of the target, it
// keeps several lines of sums in registers while it reads the lines of the source that they need.
// Columns outside the source are read as zeros, and lines outside are skipped. Terms are added in
// the order of tapsPlan, so the bits are the same for finite weights.
type planeTaps struct {
	height, width       int // of the source
	outHeight, outWidth int
	padH, padW          int // the position of the source in the lines and columns that are read; may be negative
	side, stride        int
	blocks              int
	masks               []uint16 // of each block: valid elements of each load, and valid outputs
}

// forwardPlanes returns the plan of a forward direction, or nil.
func (g GroupedConv2D) forwardPlanes() *planeTaps {
	p := &planeTaps{
		height: g.H, width: g.W, outHeight: g.P(), outWidth: g.Q(), padH: g.PadH, padW: g.PadW, side: g.R, stride: g.StrideH,
	}
	return p.prepare(g, g.C/g.Groups)
}

// backwardPlanes returns the plan of the gradient with respect to the input, or nil. With stride 1,
// it is a convolution of dout with the flipped filter.
func (g GroupedConv2D) backwardPlanes() *planeTaps {
	p := &planeTaps{
		height: g.P(), width: g.Q(), outHeight: g.H, outWidth: g.W, padH: g.R - 1 - g.PadH, padW: g.S - 1 - g.PadW, side: g.R, stride: 1,
	}
	if g.StrideH != 1 {
		return nil
	}
	return p.prepare(g, g.K/g.Groups)
}

// prepare computes the blocks and masks. It returns nil if no function suits the convolution.
func (p *planeTaps) prepare(g GroupedConv2D, sources int) *planeTaps {
	if sources != 1 || g.R != g.S || g.StrideH != g.StrideW || g.DilationH != 1 || g.DilationW != 1 || p.outHeight < p.lines() || p.lines() == 0 {
		return nil
	}
	p.blocks = ceilDiv(p.outWidth, panelColumns)
	p.masks = columnMasks(p.side, p.stride, p.padW, p.width, p.outWidth)
	return p
}

// lines returns the number of lines of sums in registers, or 0 if there is no function for the
// filter.
func (p *planeTaps) lines() int {
	switch {
	case p.side == 3 && p.stride <= 2:
		return 7
	case p.side == 5 && p.stride <= 2:
		return 4
	}
	return 0
}

// columnMasks returns, for each block of sixteen outputs of a line, masks of the valid elements of
// the vectors that it reads from a line of the source, and of the valid outputs. It reads a vector
// for each column of taps or, with stride 2, two vectors for each pair of columns.
func columnMasks(taps, stride, pad, width, outWidth int) (masks []uint16) {
	for first := 0; first < outWidth; first += panelColumns {
		for s := 0; s < taps; s += stride {
			for vector := range stride {
				at := first*stride + s + vector*panelColumns - pad
				masks = append(masks, lanesWithin(-at, width-at))
			}
		}
		masks = append(masks, lanesWithin(0, outWidth-first))
	}
	return masks
}

// lanesWithin returns a mask of the lanes of a vector in [lo, hi).
func lanesWithin(lo, hi int) (mask uint16) {
	for lane := max(0, lo); lane < min(hi, panelColumns); lane++ {
		mask |= 1 << lane
	}
	return mask
}

// convolvePlanes computes groups [lo, hi), if there is assembly for it.
func convolvePlanes[T Float](p *tapsPlan, lo, hi int, o Operands[T]) bool {
	source, target := p.sourceH*p.sourceW, p.targetH*p.targetW
	for unit := lo; unit < hi; unit++ {
		group := unit % p.shape.Groups
		for i := range p.targets {
			weights := classWeights(p, &p.classes[0], group, i, o.B, o.Scratch)
			e := epilogueOf(p, o.Bias, group*p.targets+i)
			if !convolvePlaneFast(p.planes, o.Out[(unit*p.targets+i)*target:][:target], o.A[unit*source:][:source], weights, &e) {
				return false
			}
		}
	}
	return true
}
