package kernel

import (
	"math"
	"slices"
)

// maxPoolForward sets each output to the maximum of its window. Adjacent, unpadded 2 x 2 windows
// have a fast path.
func maxPoolForward[T Float](p *poolPlan, lo, hi int, x, y []T) {
	// Instruction sets disagree on the maximum of zeros of both signs. Raise makes it positive.
	bound := T(math.Inf(-1))
	if p.ReLU {
		bound = 0
	}
	all := y[lo*p.outH*p.outW : hi*p.outH*p.outW]
	defer func() { Raise(all, all, bound) }()
	if maxPlanesFast(p, x[lo*p.H*p.W:hi*p.H*p.W], all, hi-lo) {
		return
	}
	var columns [maxColumns]T
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
			rows := from[h0*p.W : h1*p.W]
			if maxLineFast(p, line, rows) {
				continue
			}
			if p.W <= maxColumns && p.StrideW < p.S {
				maxByColumns(p, line, rows, columns[:p.W])
				continue
			}
			for j := range line {
				w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
				best := rows[w0]
				for h := 0; h < len(rows); h += p.W {
					best = max(best, slices.Max(rows[h+w0:h+w1]))
				}
				line[j] = best
			}
		}
	}
}

// noPlace is the place, in a window, of a maximum that is minus infinity or NaN. Other places are
// 4 row + column.
const noPlace = 0xff

// maxColumns is the largest width for which maxima of columns are kept.
const maxColumns = 512

// maxByColumns computes one line of outputs from the rows that its windows cover: first the maximum
// of each column, which windows that overlap share.
func maxByColumns[T Float](p *poolPlan, line, rows, columns []T) {
	copy(columns, rows)
	for row := rows[len(columns):]; len(row) > 0; row = row[len(columns):] {
		for j, v := range row[:len(columns)] {
			columns[j] = max(columns[j], v)
		}
	}
	for j := range line {
		w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
		if some := columns[w0:w1]; len(some) == 3 {
			line[j] = max(some[0], some[1], some[2])
		} else {
			line[j] = slices.Max(some)
		}
	}
}

// maxLine computes one line of outputs of 2 x 2 windows.
func maxLine[T Float](y, upper, lower []T) {
	lower = lower[:len(upper)]
	for j := range y {
		k := 2*j + 1
		y[j] = max(upper[k-1], upper[k], lower[k-1], lower[k])
	}
}

// maxPoolBackward recomputes the position of each maximum from x, so that the forward pass need not
// store it.
func maxPoolBackward[T Float](p *poolPlan, lo, hi int, dout, x, dx []T) {
	var places [maxColumns]uint8
	for plane := lo; plane < hi; plane++ {
		from := x[plane*p.H*p.W:][:p.H*p.W]
		to := dx[plane*p.H*p.W:][:p.H*p.W]
		gradient := dout[plane*p.outH*p.outW:][:p.outH*p.outW]
		clear(to)
		for i := range p.outH {
			line := gradient[i*p.outW:][:p.outW]
			h0, h1 := bounds(i, p.StrideH, p.PadH, p.R, p.H)
			if len(line) <= maxColumns && placeLineFast(p, places[:len(line)], from[h0*p.W:h1*p.W]) {
				for j, g := range line {
					at := h0*p.W + max(0, j*p.StrideW-p.PadW)
					if place := int(places[j]); place != noPlace {
						at = (h0+place/4)*p.W + j*p.StrideW - p.PadW + place%4
					}
					if !p.ReLU || from[at] > 0 {
						to[at] += g
					}
				}
				continue
			}
			for j, g := range line {
				w0, w1 := bounds(j, p.StrideW, p.PadW, p.S, p.W)
				at := h0*p.W + w0
				best := from[at]
				for h := h0; h < h1; h++ {
					for w, v := range from[h*p.W:][w0:w1] {
						// Assigning an integer and taking a maximum compile without a branch,
						// which would be mispredicted half of the time.
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

// notPositive is added to an index if the maximum is not above 0.
const notPositive = 4

// MaxIndices sets indices to the index of the maximum of each window of some planes x, see
// [Windows2x2].
func MaxIndices[T Float](q *Windows2x2, indices []uint8, x []T) {
	if maxIndicesFast(q, indices, x) {
		return
	}
	for line := range len(x) / (2 * q.width) {
		upper, lower := x[2*line*q.width:][:q.width], x[(2*line+1)*q.width:][:q.width]
		for i := range q.width / 2 {
			best, at := upper[2*i], uint8(0)
			for n, v := range [...]T{upper[2*i+1], lower[2*i], lower[2*i+1]} {
				if v > best {
					best, at = v, uint8(n+1)
				}
			}
			if !(best > 0) {
				at |= notPositive
			}
			indices[line*q.width/2+i] = at
		}
	}
}

// UnpoolGrad computes the gradient of max pooling from the indices: dx is dout at the maxima and 0
// elsewhere. If positive is set, it is also 0 where the maximum is not above 0, as for a ReLU.
func UnpoolGrad[T Float](q *Windows2x2, dx, dout []T, indices []uint8, positive bool) {
	mask := uint8(notPositive - 1)
	if positive {
		mask |= notPositive
	}
	if unpoolGradFast(q, dx, dout, indices, mask) {
		return
	}
	clear(dx)
	for i, g := range dout {
		if at := int(indices[i] & mask); at < notPositive {
			line, column := i/(q.width/2), i%(q.width/2)
			dx[(2*line+at/2)*q.width+2*column+at%2] = g
		}
	}
}
