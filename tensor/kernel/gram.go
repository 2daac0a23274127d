package kernel

// WideGram sets products[i*rows+j], for i <= j, to the inner product of rows i and j of x, which
// are stride elements apart. It does not change the products below the diagonal. The scratch has
// GramScratch(rows) elements.
//
// It computes in float64, where a product of two float32 is exact, and adds in the same order in
// all instruction sets, so that they give the same bits.
func WideGram(products []float64, x []float32, rows, columns, stride int, scratch []float64) {
	for i := range rows {
		clear(products[i*rows+i : (i+1)*rows])
	}
	for k := 0; k < columns; k += gramColumns {
		n := min(gramColumns, columns-k)
		for i := range rows {
			widen(scratch[i*gramStride:][:n], x[i*stride+k:][:n])
		}
		gramBlock(products, scratch[:rows*gramStride], rows, n)
	}
}

// GramScratch returns the length of WideGram's scratch.
func GramScratch(rows int) int { return rows * gramStride }

// widen converts x to float64.
func widen(y []float64, x []float32) {
	for i := widenFast(y, x); i < len(x); i++ {
		y[i] = float64(x[i])
	}
}

// gramBlock adds the products of some columns of rows that are gramStride apart.
func gramBlock(products, x []float64, rows, columns int) {
	height, width := gramTile()
	if rows < max(height, width) {
		height, width = 1, 1
	}
	whole := columns / gramLanes * gramLanes
	for row := 0; row < rows; row += height {
		for column := row; column < rows; column += width {
			// The last tiles overlap others, whose products they do not add again.
			i, j := min(row, rows-height), min(column, rows-width)
			a, b := x[i*gramStride:], x[j*gramStride:]
			var sums gramSums
			if whole > 0 && (height == 1 || !gramTileFast(&sums, a, b, whole)) {
				sums[0] = dotLanes(a[:whole], b[:whole])
			}
			for r := row - i; r < height; r++ {
				for c := max(column, i+r) - j; c < width; c++ {
					sum := sums[r*width+c]
					for k := whole; k < columns; k++ {
						sum += a[r*gramStride+k] * b[c*gramStride+k]
					}
					products[(i+r)*rows+j+c] += sum
				}
			}
		}
	}
}

// dotLanes returns the inner product of a multiple of gramLanes elements.
func dotLanes(a, b []float64) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	for len(a) >= gramLanes && len(b) >= gramLanes {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[gramLanes:], b[gramLanes:]
	}
	return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
}
