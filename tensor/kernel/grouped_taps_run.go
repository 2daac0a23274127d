package kernel

// tapsUnits computes groups [lo, hi), numbered across images: group g of image n has number
// n*Groups + g.
func tapsUnits[T Float](p *tapsPlan, lo, hi int, o Operands[T]) {
	if p.planes != nil && convolvePlanes(p, lo, hi, o) {
		return
	}
	copies, weights := o.Scratch[:p.source], o.Scratch[p.source:][:p.weights]
	sums := o.Scratch[p.source+p.weights:][:p.out]
	sourcePlane, targetPlane := p.sourceH*p.sourceW, p.targetH*p.targetW
	for strip := range p.strips {
		row := strip * p.rows
		rows := min(p.rows, ceilDiv(p.targetH, p.mergeH)-row)
		clear(copies) // what surrounds the sources stays zero for all groups
		at := p.sourceOf(row, rows)
		for unit := lo; unit < hi; unit++ {
			for source := range p.sources {
				copySource(p, at, copies[p.offset(source, 0, 0):], o.A[(unit*p.sources+source)*sourcePlane:][:sourcePlane])
			}
			for target := range p.targets {
				e := epilogueOf(p, o.Bias, unit%p.shape.Groups*p.targets+target)
				for i := range p.classes {
					class := &p.classes[i]
					line := sums[i*p.length(p.rows):][:p.length(rows)]
					tapLine(line, copies, class, classWeights(p, class, unit%p.shape.Groups, target, o.B, weights), e)
				}
				storeClasses(p, row, rows, sums, o.Out[(unit*p.targets+target)*targetPlane:][:targetPlane])
			}
		}
	}
}

func epilogueOf[T Float](p *tapsPlan, bias []T, filter int) epilogue[T] {
	e := epilogue[T]{floor: T(p.floor), ceiling: T(p.ceiling)}
	if p.bias {
		e.bias = bias[filter]
	}
	return e
}

// tapLine computes a line of sums, whose length is a multiple of tapLanes, over all taps:
// line[i] = sum of weights[tap] copies[class.offsets[tap]+i].
func tapLine[T Float](line, copies []T, class *tapClass, weights []T, e epilogue[T]) {
	if tapLineFast(line, copies, class, weights, &e) {
		return
	}
	clear(line)
	for tap, at := range class.offsets {
		w, from := weights[tap], copies[at:][:len(line)]
		for i, v := range from {
			line[i] += w * v
		}
	}
	for i, v := range line {
		v += e.bias
		if v < e.floor {
			v = e.floor
		}
		if v > e.ceiling {
			v = e.ceiling
		}
		line[i] = v
	}
}

// classWeights returns the weights of a class for one target of a group, in the order of the taps.
// They are collected in spare unless they are in that order.
func classWeights[T Float](p *tapsPlan, class *tapClass, group, target int, w, spare []T) []T {
	of := w[group*p.sources*p.targets*p.shape.R*p.shape.S+target*p.perTarget:]
	if class.weights == nil {
		return of[:len(class.offsets)]
	}
	for i, at := range class.weights {
		spare[i] = of[at]
	}
	return spare[:len(class.weights)]
}

// storeClasses interleaves the classes of a strip into a plane of the target.
func storeClasses[T Float](p *tapsPlan, row, rows int, sums, to []T) {
	length := p.length(p.rows)
	for a := range p.mergeH {
		first := row*p.mergeH + a
		lines := min(rows, ceilDiv(p.targetH-first, p.mergeH))
		if lines < 1 {
			break
		}
		to, step := to[first*p.targetW:], p.mergeH*p.targetW
		from := sums[a*p.mergeW*length:]
		switch p.mergeW {
		case 1:
			copyLinesOf(to, step, from, p.pitch, lines, p.targetW)
		case 2:
			zipLinesOf(to, step, from, from[length:], p.pitch, lines, p.targetW)
		default:
			for b := range min(p.mergeW, p.targetW) {
				for i := range lines {
					for j := range ceilDiv(p.targetW-b, p.mergeW) {
						to[i*step+j*p.mergeW+b] = from[b*length+i*p.pitch+j]
					}
				}
			}
		}
	}
}

// copied is the part of a source plane that a strip's copy holds: rows and columns of the plane,
// and where the first of them is in the copy.
type copied struct {
	row, rows, column, columns int
	line, place                int
}

// sourceOf returns the part of a source plane for a strip of some rows of a class.
func (p *tapsPlan) sourceOf(row, rows int) (c copied) {
	first, width := row*p.splitH-p.top, (ceilDiv(p.targetW, p.mergeW)-1)*p.splitW+p.spanW
	c.row, c.column = max(0, first), max(0, -p.left)
	c.rows = max(0, min(p.sourceH, first+(rows-1)*p.splitH+p.spanH)-c.row)
	c.columns = max(0, min(p.sourceW, width-p.left)-c.column)
	c.line, c.place = c.row-first, c.column+p.left
	return c
}

// copySource copies a part of a source plane into the phases of a copy.
func copySource[T Float](p *tapsPlan, c copied, copies, source []T) {
	if c.columns == 0 {
		return
	}
	for a := range min(p.splitH, c.rows) {
		line, lines := c.line+a, ceilDiv(c.rows-a, p.splitH)
		from := source[(c.row+a)*p.sourceW+c.column:]
		to := copies[(line%p.splitH*p.splitW*p.lines+line/p.splitH)*p.pitch:]
		switch p.splitW {
		case 1:
			copyLinesOf(to[c.place:], p.pitch, from, p.splitH*p.sourceW, lines, c.columns)
		case 2:
			phase := p.lines * p.pitch
			even, odd := to[c.place%2*phase+c.place/2:], to[(c.place+1)%2*phase+(c.place+1)/2:]
			unzipLinesOf(even, odd, p.pitch, from, p.splitH*p.sourceW, lines, c.columns)
		default:
			for b := range min(p.splitW, c.columns) {
				place := c.place + b
				to := to[place%p.splitW*p.lines*p.pitch+place/p.splitW:]
				for i := range lines {
					for j := range ceilDiv(c.columns-b, p.splitW) {
						to[i*p.pitch+j] = from[i*p.splitH*p.sourceW+b+j*p.splitW]
					}
				}
			}
		}
	}
}
