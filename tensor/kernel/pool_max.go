package kernel

func maxPoolForward[T Float](p *poolPlan, tile int, x, y []T) {
	lo, hi := p.planes(tile)
	for plane := lo; plane < hi; plane++ {
		from := x[plane*p.H*p.W:][:p.H*p.W]
		to := y[plane*p.outH*p.outW:][:p.outH*p.outW]
		for i := range p.outH {
			if p.simple() {
				n := lineLength[T](p, i)
				maxLine(to[i*p.outW:][:n], from[2*i*p.W:][:2*n], from[(2*i+1)*p.W:][:2*n])
				continue
			}
			line := to[i*p.outW:][:p.outW]
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

// lineLength is the number of outputs of 2 x 2 windows to compute at line i: a
// line, or one vector when a line is shorter. What is then written too far are
// parts of later lines, which are not computed yet.
func lineLength[T Float](p *poolPlan, i int) int {
	n := vectorLength[T]()
	if p.outW < n && n <= 2*p.outW && p.W == 2*p.outW && i < p.outH-1 {
		return n
	}
	return p.outW
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
		if !p.simple() || p.H != 2*p.outH || p.W != 2*p.outW {
			clear(to)
		}
		for i := range p.outH {
			if p.simple() {
				at, n := 2*i*p.W, lineLength[T](p, i)
				maxLineBackward(to[at:][:p.W+2*n], from[at:][:p.W+2*n], gradient[i*p.outW:][:n], p.W)
				continue
			}
			line := gradient[i*p.outW:][:p.outW]
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

// maxLineBackward is one line of 2 x 2 windows; x and dx hold two lines, width
// apart.
func maxLineBackward[T Float](dx, x, gradient []T, width int) {
	if maxLineBackwardFast(dx, x, gradient, width) {
		return
	}
	dx = dx[:len(x)]
	upper, lower := x[:width], x[width:]
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
		dx[k-1], dx[k], dx[k-1+width], dx[k+width] = 0, 0, 0, 0
		dx[at] = g
	}
}
