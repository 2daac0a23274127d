package kernel

func maxPoolForward[T Float](p *poolPlan, tile int, x, y []T) {
	lo, hi := p.planes(tile)
	for plane := lo; plane < hi; plane++ {
		from := x[plane*p.H*p.W:][:p.H*p.W]
		to := y[plane*p.outH*p.outW:][:p.outH*p.outW]
		for i := range p.outH {
			line := to[i*p.outW:][:p.outW]
			if p.simple() {
				maxLine(line, from[2*i*p.W:][:p.W], from[(2*i+1)*p.W:][:p.W])
				continue
			}
			for j := range line {
				line[j] = from[firstMaximum(p, from, i, j)]
			}
		}
	}
}

// maxLine is one line of outputs of 2 x 2 windows.
func maxLine[T Float](y, upper, lower []T) {
	lower = lower[:len(upper)]
	for j := range y {
		k := 2 * j
		y[j] = max(upper[k], upper[k+1], lower[k], lower[k+1])
	}
}

// firstMaximum returns the position in the plane of the first maximum of a
// window.
func firstMaximum[T Float](p *poolPlan, plane []T, i, j int) int {
	h0, h1 := bounds(i, p.StrideH, p.PadH, p.R, p.H)
	w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
	at := h0*p.W + w0
	best := plane[at]
	for h := h0; h < h1; h++ {
		for w, v := range plane[h*p.W:][w0:w1] {
			if v > best || v != v {
				at, best = h*p.W+w0+w, v
			}
		}
	}
	return at
}

func maxPoolBackward[T Float](p *poolPlan, tile int, dout, x, dx []T) {
	lo, hi := p.planes(tile)
	for plane := lo; plane < hi; plane++ {
		from := x[plane*p.H*p.W:][:p.H*p.W]
		to := dx[plane*p.H*p.W:][:p.H*p.W]
		gradient := dout[plane*p.outH*p.outW:][:p.outH*p.outW]
		clear(to)
		for i := range p.outH {
			line := gradient[i*p.outW:][:p.outW]
			if p.simple() {
				at := 2 * i * p.W
				maxLineBackward(to[at:][:2*p.W], from[at:][:2*p.W], line)
				continue
			}
			for j, g := range line {
				to[firstMaximum(p, from, i, j)] += g
			}
		}
	}
}

// maxLineBackward is one line of 2 x 2 windows; x and dx are two lines long.
func maxLineBackward[T Float](dx, x, gradient []T) {
	width := len(x) / 2
	dx = dx[:len(x)]
	for j, g := range gradient {
		k := 2 * j
		at, best := k, x[k]
		if v := x[k+1]; v > best || v != v {
			at, best = k+1, v
		}
		if v := x[k+width]; v > best || v != v {
			at, best = k+width, v
		}
		if v := x[k+width+1]; v > best || v != v {
			at = k + width + 1
		}
		dx[at] = g
	}
}
