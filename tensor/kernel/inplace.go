package kernel

// A product A'B with few rows uses each element of B only a few times, so that copying B into
// panels would take about as long as multiplying. Its tiles therefore read B where it is. They go
// down a block of columns a few rows of B at a time, from left to right, and keep the sums of the
// whole block in the cache: reading down one panel after the other would touch a new page for each
// depth. An example is the gradient of a linear layer with few outputs.

const (
	// inPlaceTiles bounds the register tiles below each other for which B is read in place.
	inPlaceTiles = 3
	// inPlaceDepth is the number of rows of B that are read from left to right.
	inPlaceDepth = 16
)

// readsInPlace reports whether B is read where it is.
func (g Gemm) readsInPlace() bool {
	return g.TransposeA && !g.TransposeB && !g.PackB && g.Bias == NoBias && !g.ReLU &&
		g.N%panelColumns == 0 && g.M <= inPlaceTiles*microRows
}

// gemmInPlace computes one block of columns of the output.
func gemmInPlace[T Float](p *gemmPlan, tile int, o Operands[T]) {
	lo, hi := p.panels(tile)
	column, width := lo*panelColumns, (hi-lo)*panelColumns
	groups, blocks := splitRows(p.M), depthBlocks(p.K)
	for block := range blocks {
		k0, k1 := splitRange(p.K, blocks, block)
		for k := k0; k < k1; k += inPlaceDepth {
			depth := min(inPlaceDepth, k1-k)
			for n := range groups.count {
				i, end := groups.rows(n)
				multiplyInPlace(end-i, hi-lo, depth, o.A[k*p.M+i:], p.M, o.B[k*p.N+column:], p.N, o.Scratch[i*width:], k > k0)
			}
		}
		for i := range p.M {
			out, sums := o.Out[i*p.N+column:][:width], o.Scratch[i*width:][:width]
			if block == 0 && !p.Accumulate {
				copy(out, sums)
			} else {
				Add(out, sums, out)
			}
		}
	}
}

// multiplyInPlace computes the sums of some rows and panels side by side, or adds to them:
// sums[i*16*panels+j] = sum_k a[k*aStride+i] b[k*bStride+j].
func multiplyInPlace[T Float](rows, panels, depth int, a []T, aStride int, b []T, bStride int, sums []T, add bool) {
	width := panels * panelColumns
	if multiplyInPlaceFast(rows, panels, depth, a, aStride, b, bStride, sums, add) {
		return
	}
	for i := range rows {
		row := sums[i*width:][:width]
		if !add {
			clear(row)
		}
		for k := range depth {
			scalar := a[k*aStride+i]
			for j, v := range b[k*bStride:][:width] {
				row[j] += scalar * v
			}
		}
	}
}
