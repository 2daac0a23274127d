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
			h0, h1 := bounds(i, p.StrideH, p.PadH, p.R, p.H)
			for j := range line {
				w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
				best := from[h0*p.W+w0]
				for h := h0; h < h1; h++ {
					for _, v := range from[h*p.W:][w0:w1] {
						best = max(best, v)
					}
				}
				line[j] = best
			}
		}
	}
}

// maxLine is one line of outputs of 2 x 2 windows.
func maxLine[T Float](y, upper, lower []T) {
	if maxLineFast(y, upper, lower) {
		return
	}
	lower = lower[:len(upper)]
	for j := range y {
		k := 2*j + 1
		y[j] = max(upper[k-1], upper[k], lower[k-1], lower[k])
	}
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
			h0, h1 := bounds(i, p.StrideH, p.PadH, p.R, p.H)
			for j, g := range line {
				w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
				at := h0*p.W + w0
				best := from[at]
				for h := h0; h < h1; h++ {
					for w, v := range from[h*p.W:][w0:w1] {
						// An assignment of an integer and a maximum need no
						// branch, which would be mispredicted half of the time.
						if v > best {
							at = h*p.W + w0 + w
						}
						best = max(best, v)
					}
				}
				to[at] += g
			}
		}
	}
}

// maxLineBackward is one line of 2 x 2 windows; x and dx are two lines long, and
// dx is zero.
func maxLineBackward[T Float](dx, x, gradient []T) {
	if maxLineBackwardFast(dx, x, gradient) {
		return
	}
	width := len(x) / 2
	dx = dx[:len(x)]
	upper, lower := x[:width], x[width:][:width]
	for j, g := range gradient {
		k := 2*j + 1
		a, b, c, d := upper[k-1], upper[k], lower[k-1], lower[k]
		at := k - 1
		if b > a {
			at = k
		}
		below := k - 1 + width
		if d > c {
			below = k + width
		}
		if max(c, d) > max(a, b) {
			at = below
		}
		dx[at] = g
	}
}
