package kernel

// multiplyRows computes six rows of a tile, one column at a time: six sums and their operands fit
// into the registers of every processor that Go supports.
func multiplyRows[T Float](rows *[minRows][]T, b []T, sums *[minRows * panelColumns]T) {
	n := len(rows[0])
	row0, row1, row2 := rows[0], rows[1][:n], rows[2][:n]
	row3, row4, row5 := rows[3][:n], rows[4][:n], rows[5][:n]
	for j := range panelColumns {
		var s0, s1, s2, s3, s4, s5 T
		for k, a := range row0 {
			v := b[k*panelColumns+j]
			s0 += a * v
			s1 += row1[k] * v
			s2 += row2[k] * v
			s3 += row3[k] * v
			s4 += row4[k] * v
			s5 += row5[k] * v
		}
		sums[j] = s0
		sums[j+panelColumns] = s1
		sums[j+2*panelColumns] = s2
		sums[j+3*panelColumns] = s3
		sums[j+4*panelColumns] = s4
		sums[j+5*panelColumns] = s5
	}
}

// multiplyStrided computes the sums of a tile with a strided left factor, six rows at a time. If
// rows is not a multiple of six, the last six rows repeat some; if it is less than six, the last
// row is repeated.
func multiplyStrided[T Float](rows, depth int, a leftFactor[T], b []T, sums *[maxRows * panelColumns]T) {
	for i := 0; i < rows; i += minRows {
		from := sixFrom(i, rows)
		a := leftFactor[T]{data: a.data[from*a.rowStride:], rowStride: a.rowStride, depthStride: a.depthStride}
		six := (*[minRows * panelColumns]T)(sums[from*panelColumns:])
		if a.depthStride != 1 {
			multiplyCopied(rows-from, depth, a, b, six)
			continue
		}
		var lines [minRows][]T
		for i := range lines {
			lines[i] = a.data[min(i, rows-from-1)*a.rowStride:][:depth]
		}
		multiplyRows(&lines, b, six)
	}
}

// sixFrom returns the first of the six rows that are computed for row i.
func sixFrom(i, rows int) int { return max(0, min(i, rows-minRows)) }

// multiplyCopied is multiplyStrided for six rows, with a contiguous copy of the left factor.
func multiplyCopied[T Float](rows, depth int, a leftFactor[T], b []T, sums *[minRows * panelColumns]T) {
	var copies [minRows][maxDepth]T
	var lines [minRows][]T
	for i := range lines {
		lines[i] = copies[i][:depth]
		from := a.data[min(i, rows-1)*a.rowStride:]
		for k := range lines[i] {
			lines[i][k] = from[k*a.depthStride]
		}
	}
	multiplyRows(&lines, b, sums)
}

// multiplyGathered computes the sums of a tile with a left factor given by tables.
func multiplyGathered[T Float](data []T, rowOffsets, depthOffsets []int32, b []T, sums *[maxRows * panelColumns]T) {
	var copies [minRows][maxDepth]T
	var lines [minRows][]T
	rows := len(rowOffsets)
	for i := 0; i < rows; i += minRows {
		first := sixFrom(i, rows)
		for i := range lines {
			lines[i] = copies[i][:len(depthOffsets)]
			from := data[rowOffsets[min(first+i, rows-1)]:]
			for k, at := range depthOffsets {
				lines[i][k] = from[at]
			}
		}
		multiplyRows(&lines, b, (*[minRows * panelColumns]T)(sums[first*panelColumns:]))
	}
}
