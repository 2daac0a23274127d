package kernel

func averagePoolForward[T Float](p *poolPlan, tile int, x, y []T) {
	lo, hi := p.planes(tile)
	for plane := lo; plane < hi; plane++ {
		from := x[plane*p.H*p.W:][:p.H*p.W]
		to := y[plane*p.outH*p.outW:][:p.outH*p.outW]
		for i := range p.outH {
			h0, h1 := bounds(i, p.StrideH, p.PadH, p.R, p.H)
			line := to[i*p.outW:][:p.outW]
			for j := range line {
				w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
				var sum T
				for h := h0; h < h1; h++ {
					for _, v := range from[h*p.W:][w0:w1] {
						sum += v
					}
				}
				line[j] = sum / T((h1-h0)*(w1-w0))
			}
		}
	}
}

func averagePoolBackward[T Float](p *poolPlan, tile int, dout, dx []T) {
	lo, hi := p.planes(tile)
	for plane := lo; plane < hi; plane++ {
		to := dx[plane*p.H*p.W:][:p.H*p.W]
		gradient := dout[plane*p.outH*p.outW:][:p.outH*p.outW]
		clear(to)
		for i := range p.outH {
			h0, h1 := bounds(i, p.StrideH, p.PadH, p.R, p.H)
			for j, g := range gradient[i*p.outW:][:p.outW] {
				w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
				share := g / T((h1-h0)*(w1-w0))
				for h := h0; h < h1; h++ {
					line := to[h*p.W:][w0:w1]
					for w := range line {
						line[w] += share
					}
				}
			}
		}
	}
}
