package kernel

// flipFilter writes flipped[c k r s] = w[k c R-1-r S-1-s] for a range of channels c.
func flipFilter[T Float](p *convPlan, tile int, w, flipped []T) {
	s := p.shape
	area := s.R * s.S
	lo, hi := splitRange(s.C, min(s.C, tileCount), tile)
	for c := lo; c < hi; c++ {
		for k := range s.K {
			from := w[(k*s.C+c)*area:][:area]
			to := flipped[(c*s.K+k)*area:][:area]
			for i, v := range from {
				to[area-1-i] = v
			}
		}
	}
}

// convTile convolves the pixels of one tile with the filter [outputs, taps].
func convTile[T Float](p *convPlan, tile, batch int, x, filter, bias, y, scratch []T) {
	at := p.part(tile/p.ranges, batch)
	padded := scratch[:p.paddedSize()]
	panels := scratch[len(padded):]
	// The padded copy makes every tap of every pixel valid, so that no bounds are checked below.
	if p.inSource && useAssembly[T]() {
		padded = x[at.image*p.channels*p.height*p.width+at.row*p.width:]
	} else {
		pad(&p.window, padded, x, at.image, at.images, 0, p.channels, at.row)
	}
	if p.ranges > 1 {
		some, plane := *p, p.outH*p.outW
		lo, hi := splitRange(p.outputs, p.ranges, tile%p.ranges)
		y, filter = y[(at.image*p.outputs+lo)*plane:][:(hi-lo)*plane], filter[lo*len(p.taps):hi*len(p.taps)]
		if p.bias {
			bias = bias[lo:hi]
		}
		some.outputs, at.image, p = hi-lo, 0, &some
	}
	if p.inPlace(p.outputs) && convInPlace(p, at, filter, bias, y, padded) {
		return
	}
	convPacked(p, at, padded, filter, bias, y, panels)
}

// convInPlace multiplies all groups of output channels by the windows as they lie in the padded
// images, with one call per group. It reports false, having done nothing, if there is no assembly
// for it.
func convInPlace[T Float](p *convPlan, at part, filter, bias, y, padded []T) bool {
	depth, plane := len(p.taps), p.outH*p.outW
	halves := at.images * at.rows * p.halves
	places := p.places[:2*(halves&^1)]
	var last [4]int32 // the last of an odd number of halves, as both halves of a panel
	if halves%2 == 1 {
		input, output := p.places[2*(halves-1)], p.places[2*halves]
		last = [4]int32{input, input, output, output}
	}
	blocks, groups := depthBlocks(depth), splitRows(p.outputs)
	for block := range blocks {
		k0, k1 := splitRange(depth, blocks, block)
		f := p.epilogue(block == 0, block == blocks-1)
		for group := range groups.count {
			k, end := groups.rows(group)
			some := bias
			if p.bias {
				some = bias[k:]
			}
			a := leftFactor[T]{data: filter[k*depth+k0:], rowStride: depth, depthStride: 1}
			out := y[(at.image*p.outputs+k)*plane+at.row*p.outW:]
			if len(places) > 0 && !multiplyWindowsFast(end-k, a, padded, places, p.taps[k0:k1], out, plane, some, f) {
				return false
			}
			if halves%2 == 1 && !multiplyWindowsFast(end-k, a, padded, last[:], p.taps[k0:k1], out, plane, some, f) {
				return false
			}
		}
	}
	return true
}
