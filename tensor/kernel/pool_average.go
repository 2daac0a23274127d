package kernel

// averagePoolForward sets each output to the mean of its window's elements within the image:
// padding counts neither in the sum nor in the divisor.
func averagePoolForward[T Float](p *poolPlan, lo, hi int, x, y []T) {
	for plane := lo; plane < hi; plane++ {
		from := x[plane*p.H*p.W:][:p.H*p.W]
		to := y[plane*p.outH*p.outW:][:p.outH*p.outW]
		for i := range p.outH {
			if p.simple() {
				averageLine(to[i*p.outW:][:p.outW], from[2*i*p.W:][:p.W], from[(2*i+1)*p.W:][:p.W])
				continue
			}
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

// averageLine computes one line of outputs of 2 x 2 windows.
func averageLine[T Float](y, upper, lower []T) {
	lower = lower[:len(upper)]
	for j := range y {
		k := 2*j + 1
		y[j] = (upper[k-1] + upper[k] + lower[k-1] + lower[k]) / 4
	}
}

// averagePoolBackward distributes each gradient equally over the elements of its window. Windows
// may overlap, so contributions are added.
func averagePoolBackward[T Float](p *poolPlan, lo, hi int, dout, dx []T) {
	for plane := lo; plane < hi; plane++ {
		to := dx[plane*p.H*p.W:][:p.H*p.W]
		gradient := dout[plane*p.outH*p.outW:][:p.outH*p.outW]
		clear(to)
		for i := range p.outH {
			if p.simple() {
				line := gradient[i*p.outW:][:p.outW]
				averageLineBackward(to[2*i*p.W:][:p.W], to[(2*i+1)*p.W:][:p.W], line)
				continue
			}
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

// averageLineBackward computes the gradient of one line of 2 x 2 windows.
func averageLineBackward[T Float](dupper, dlower, gradient []T) {
	dlower = dlower[:len(dupper)]
	for j, g := range gradient {
		k, share := 2*j+1, g/4
		dupper[k-1], dupper[k] = share, share
		dlower[k-1], dlower[k] = share, share
	}
}
