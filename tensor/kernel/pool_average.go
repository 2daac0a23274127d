package kernel

// averagePoolForward sets each output to the mean of its window's elements within the image:
// padding counts neither in the sum nor in the divisor.
func averagePoolForward[T Float](p *poolPlan, lo, hi int, x, y []T) {
	if p.byPlane() {
		averagePlanes(p, lo, hi, x, y)
		return
	}
	var columns [maxColumns]T
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
			if p.W <= maxColumns && p.StrideW < p.S {
				averageByColumns(p, line, from[h0*p.W:h1*p.W], columns[:p.W])
				continue
			}
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

// averageByColumns computes one line of outputs from the rows that its windows cover: first the sum
// of each column, which windows that overlap share.
func averageByColumns[T Float](p *poolPlan, line, rows, columns []T) {
	height := len(rows) / len(columns)
	sumLines(columns, rows, height, len(columns))
	for j := range line {
		w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
		line[j] = sumOf(columns[w0:w1]) / T(height*(w1-w0))
	}
}

// sumLines computes y as the sum of n parts of x of the same length, which begin pitch elements
// apart.
func sumLines[T Float](y, x []T, n, pitch int) {
	copy(y, x)
	for i := 1; i < n; i++ {
		Add(y, y, x[i*pitch:][:len(y)])
	}
}

func sumOf[T Float](x []T) (sum T) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// maxSums is the largest number of elements of a plane whose sums are computed together.
const maxSums = 4096

// byPlane reports whether the windows of a line are one element apart, and there is one for each
// column, so that the sums of a plane are sums of shifted planes.
func (p *poolPlan) byPlane() bool {
	return p.StrideH == 1 && p.StrideW == 1 && p.outW == p.W && p.outH*p.W <= maxSums
}

// averagePlanes is averagePoolForward if byPlane holds. It has a function of its own because other
// windows do not need its memory.
func averagePlanes[T Float](p *poolPlan, lo, hi int, x, y []T) {
	var sums, counts [maxSums]T
	in, out := p.H*p.W, p.outH*p.outW
	countElements(p, counts[:out])
	for plane := lo; plane < hi; plane++ {
		averagePlane(p, y[plane*out:][:out], x[plane*in:][:in], sums[:out], counts[:out])
	}
}

// averagePlane computes a plane of windows for which byPlane holds. It adds up columns first, and
// then these sums. counts has the number of elements of each window.
func averagePlane[T Float](p *poolPlan, y, x, sums, counts []T) {
	whole := max(1, min(p.H-p.R+1, p.outH)) // lines whose windows have full height, from line PadH on
	for i, lines := 0, 1; i < p.outH; i += lines {
		if lines = 1; i == p.PadH {
			lines = min(whole, p.outH-i)
		}
		h0, h1 := bounds(i, 1, p.PadH, p.R, p.H)
		sumLines(sums[i*p.W:][:lines*p.W], x[h0*p.W:], h1-h0, p.W)
	}
	left := min(p.PadW, p.W)
	right := max(left, min(left+p.W-p.S+1, p.W)) // windows from left to right have full width
	if right > left {
		sumLines(y[left:len(y)-p.W+right], sums, p.S, 1)
	}
	for i := range p.outH {
		line, columns := y[i*p.W:][:p.W], sums[i*p.W:][:p.W]
		for j := range line {
			if j < left || j >= right {
				w0, w1 := bounds(j, 1, p.PadW, p.S, p.W)
				line[j] = sumOf(columns[w0:w1])
			}
		}
	}
	Divide(y, y, counts)
}

// countElements sets counts to the number of elements of each window of a plane.
func countElements[T Float](p *poolPlan, counts []T) {
	for i := range p.outH {
		h0, h1 := bounds(i, p.StrideH, p.PadH, p.R, p.H)
		for j := range p.outW {
			w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
			counts[i*p.outW+j] = T((h1 - h0) * (w1 - w0))
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
