package kernel

// averagePoolForward sets each output to the mean of its window's elements within the image:
// padding counts neither in the sum nor in the divisor.
func averagePoolForward[T Float](p *poolPlan, lo, hi int, x, y []T) {
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
	copy(columns, rows)
	for row := rows[len(columns):]; len(row) > 0; row = row[len(columns):] {
		Add(columns, columns, row[:len(columns)])
	}
	from, to := 0, 0 // windows of full width, if they are a column apart
	if p.StrideW == 1 {
		from = min(p.PadW, len(line))
		to = min(max(from, p.PadW+p.W-p.S+1), len(line))
	}
	if whole := line[from:to]; len(whole) > 0 {
		copy(whole, columns)
		for tap := 1; tap < p.S; tap++ {
			Add(whole, whole, columns[tap:][:len(whole)])
		}
		for j := range whole {
			whole[j] /= T(height * p.S)
		}
	}
	for j := range line {
		if from <= j && j < to {
			continue
		}
		w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
		var sum T
		for _, v := range columns[w0:w1] {
			sum += v
		}
		line[j] = sum / T(height*(w1-w0))
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
