package kernel

// transform writes M x M' for count patches x: first M x, column by column, then its rows times M'.
func transform[T Float](m *linearMap, to []T, toAt patchLayout, from []T, fromAt patchLayout, count int, temporary []T) {
	if transformFast(m, to, toAt, from, fromAt, count, temporary) {
		return
	}
	// Coefficients are rounded to T once, and zeros are skipped.
	var coefficients [maxPoints * maxPoints]T
	var some [maxLanes]T
	for i := range m.rows * m.columns {
		coefficients[i] = T(m.at[i])
	}
	epilogue, half := temporary[:3*lanes], temporary[3*lanes:]
	for patch := range count {
		x, y := from[patch*fromAt.patch:], to[patch*toAt.patch:]
		for i := range m.rows {
			row := coefficients[i*m.columns:][:m.columns]
			for j := range m.columns {
				sum := half[(i*m.columns+j)*lanes:][:lanes]
				clear(sum)
				for k, c := range row {
					if c != 0 {
						addScaled(sum, c, x[k*fromAt.row+j*fromAt.column:])
					}
				}
			}
		}
		for i := range m.rows {
			for j := range m.rows {
				sum := some[:lanes]
				clear(sum)
				for k, c := range coefficients[j*m.columns:][:m.columns] {
					if c != 0 {
						addScaled(sum, c, half[(i*m.columns+k)*lanes:])
					}
				}
				finishPatch(y[i*toAt.row+j*toAt.column:][:lanes], sum, epilogue, m.finish)
			}
		}
	}
}

func addScaled[T Float](sum []T, c T, x []T) {
	for lane, v := range x[:len(sum)] {
		sum[lane] += c * v
	}
}

func finishPatch[T Float](to, sum, epilogue []T, finish finishing) {
	switch finish {
	case finishAdd:
		for lane, v := range sum {
			to[lane] += v
		}
	case finishBias:
		for lane, v := range sum {
			v += epilogue[lane]
			if v < epilogue[lanes+lane] {
				v = epilogue[lanes+lane]
			}
			if v > epilogue[2*lanes+lane] {
				v = epilogue[2*lanes+lane]
			}
			to[lane] = v
		}
	default:
		copy(to, sum)
	}
}

// interleave copies up to lanes planes into an image in blocks, whose rows are toRow elements
// apart. Lanes without a plane repeat the last one.
func interleave[T Float](to []T, toRow int, from []T, p planes) {
	if interleaveFast(to, toRow, from, p) {
		return
	}
	for row := range p.rows {
		line := to[row*toRow:][:p.width*lanes]
		for lane := range lanes {
			for i, v := range from[min(lane, p.count-1)*p.plane+row*p.row:][:p.width] {
				line[i*lanes+lane] = v
			}
		}
	}
}

// separate is the inverse of interleave: it copies the first lanes of an image in blocks, whose
// rows are fromRow elements apart, into planes.
func separate[T Float](to []T, p planes, from []T, fromRow int) {
	if separateFast(to, p, from, fromRow) {
		return
	}
	for row := range p.rows {
		line := from[row*fromRow:][:p.width*lanes]
		for lane := range p.count {
			out := to[lane*p.plane+row*p.row:][:p.width]
			for i := range out {
				out[i] = line[i*lanes+lane]
			}
		}
	}
}
