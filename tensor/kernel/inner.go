package kernel

// A product of a few rows, such as a dense layer's for one image, reads all of B for little work.
// If B is transposed, its rows are read in place, and each element of the output is the inner
// product of a row of A and a row of B. Packing B would take longer than the product.

// innerRows is the largest number of rows of A for which inner products take less time than a
// packed B.
const innerRows = 4

// Inner reports whether elements of the product are sums of panelColumns interleaved sums, those
// over k, k+panelColumns, and so on. Other products add in the order of k.
func (g Gemm) Inner() bool {
	return g.M <= innerRows && g.K >= panelColumns && g.TransposeB && !g.TransposeA
}

// gemmInner computes the panels of a tile as inner products.
func gemmInner[T Float](p *gemmPlan, tile int, o Operands[T]) {
	f := p.epilogue(true, true)
	for n, end := p.panels(tile); n < end; n++ {
		column := n * panelColumns
		columns := min(panelColumns, p.N-column)
		b := o.B[column*p.K:][:columns*p.K]
		for row := range p.M {
			var sums [panelColumns]T
			innerProducts(sums[:columns], o.A[row*p.K:][:p.K], b)
			bias := biasOf(o.Bias, row, row+1, f)
			if f&flagBiasColumn != 0 {
				bias = bias[column:]
			}
			storeTile(1, columns, sums[:], o.Out[row*p.N+column:], p.N, bias, f)
		}
	}
}

// innerProducts sets sums to the inner products of x and rows of the same length.
func innerProducts[T Float](sums, x, rows []T) {
	depth := len(x)
	whole := depth / panelColumns * panelColumns
	if !innerProductsFast(sums, x[:whole], rows, depth) {
		for i := range sums {
			sums[i] = innerProduct(x[:whole], rows[i*depth:][:whole])
		}
	}
	for i := range sums {
		for k := whole; k < depth; k++ {
			sums[i] += T(x[k] * rows[i*depth+k]) // rounded, as on processors without FMA
		}
	}
}

// innerProduct returns the inner product of a multiple of panelColumns elements.
func innerProduct[T Float](a, b []T) T {
	var lanes [panelColumns]T
	for lane := 0; lane < panelColumns; lane += 4 {
		var s0, s1, s2, s3 T
		for k := lane; k < len(a); k += panelColumns {
			x, y := (*[4]T)(a[k:]), (*[4]T)(b[k:])
			s0 += x[0] * y[0]
			s1 += x[1] * y[1]
			s2 += x[2] * y[2]
			s3 += x[3] * y[3]
		}
		*(*[4]T)(lanes[lane:]) = [4]T{s0, s1, s2, s3}
	}
	for n := panelColumns / 2; n > 0; n /= 2 {
		for i := range n {
			lanes[i] += lanes[i+n]
		}
	}
	return lanes[0]
}
