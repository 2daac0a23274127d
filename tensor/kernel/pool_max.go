package kernel

// poolSegment is the outputs of 2 x 2 windows that half a vector holds.
const poolSegment = 4

// pairSegments sets table for 2 x 2 windows. Each line of a plane's outputs is cut into segments,
// the last of which may overlap the one before. Segments go in pairs, each with its places in x,
// then its places in y.
func (p *poolPlan) pairSegments() {
	if !p.simple() || p.outW < poolSegment {
		return
	}
	var segments [][2]int32
	for line := range p.outH {
		for q := 0; q < p.outW; q += poolSegment {
			at := min(q, p.outW-poolSegment)
			segments = append(segments, [2]int32{int32(2*line*p.W + 2*at), int32(line*p.outW + at)})
		}
	}
	if len(segments)%2 == 1 {
		segments = append(segments, segments[len(segments)-1])
	}
	for i := 0; i < len(segments); i += 2 {
		a, b := segments[i], segments[i+1]
		p.table = append(p.table, a[0], b[0], a[1], b[1])
	}
}

func maxPoolForward[T Float](p *poolPlan, lo, hi int, x, y []T) {
	if maxPlanesFast(p, x[lo*p.H*p.W:hi*p.H*p.W], y[lo*p.outH*p.outW:hi*p.outH*p.outW], hi-lo) {
		return
	}
	for plane := lo; plane < hi; plane++ {
		from := x[plane*p.H*p.W:][:p.H*p.W]
		to := y[plane*p.outH*p.outW:][:p.outH*p.outW]
		for i := range p.outH {
			if p.simple() {
				maxLine(to[i*p.outW:][:p.outW], from[2*i*p.W:][:2*p.outW], from[(2*i+1)*p.W:][:2*p.outW])
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
		if p.ReLU {
			Raise(to, to, 0)
		}
	}
}

// maxLine is one line of outputs of 2 x 2 windows.
func maxLine[T Float](y, upper, lower []T) {
	lower = lower[:len(upper)]
	for j := range y {
		k := 2*j + 1
		y[j] = max(upper[k-1], upper[k], lower[k-1], lower[k])
	}
}

func maxPoolBackward[T Float](p *poolPlan, lo, hi int, dout, x, dx []T) {
	x, dx, dout = x[lo*p.H*p.W:hi*p.H*p.W], dx[lo*p.H*p.W:hi*p.H*p.W], dout[lo*p.outH*p.outW:hi*p.outH*p.outW]
	if !p.simple() || p.H != 2*p.outH || p.W != 2*p.outW {
		clear(dx)
	}
	if maxPlanesBackwardFast(p, dx, x, dout, hi-lo) {
		return
	}
	for plane := range hi - lo {
		from := x[plane*p.H*p.W:][:p.H*p.W]
		to := dx[plane*p.H*p.W:][:p.H*p.W]
		gradient := dout[plane*p.outH*p.outW:][:p.outH*p.outW]
		for i := range p.outH {
			if p.simple() {
				at := 2 * i * p.W
				maxLineBackward(to[at:][:p.W+2*p.outW], from[at:][:p.W+2*p.outW], gradient[i*p.outW:][:p.outW], p.W, p.ReLU)
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
				if !p.ReLU || from[at] > 0 {
					to[at] += g
				}
			}
		}
	}
}

// maxLineBackward is one line of 2 x 2 windows; x and dx hold two lines, width
// apart.
func maxLineBackward[T Float](dx, x, gradient []T, width int, positive bool) {
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
		if !positive || x[at] > 0 {
			dx[at] = g
		}
	}
}
