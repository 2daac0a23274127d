package kernel

// tapsFilterPlan computes the gradient of the filter of a grouped convolution with small groups:
// for each tap, the product of the output's gradient, as one long line with zeros between its
// lines, and the line of the copy of x that the tap reads (see tapsPlan).
type tapsFilterPlan struct {
	tapsPlan
	images   []int // the first image of each partial sum, and the end
	ranges   int   // of groups, each a tile
	gradient int   // elements of the scratch memory for lines of dout
}

// filterTaps prepares BackwardFilter tap by tap.
func (g GroupedConv2D) filterTaps() Routine {
	p := &tapsFilterPlan{tapsPlan: *g.forwardTaps(), images: g.partialSums()}
	parts := len(p.images) - 1
	p.ranges = min(g.Groups, ceilDiv(2*tileCount, parts))
	p.gradient = p.length(p.rows)
	return Routine{
		Phases:    []int{parts * p.ranges, combineTiles(g.sizeW())},
		Workspace: parts * g.sizeW(), Scratch: p.source + p.gradient,
		Rows: g.B, Unit: 1, Parts: p.images,
		kind: kindTapsFilter, plan: p,
		sizeA: g.sizeY(), sizeB: g.sizeX(), sizeOut: g.sizeW(),
	}
}

// tapsFilterTile sums the gradients of a range of groups over one range of images, or adds the
// ranges of images.
func tapsFilterTile[T Float](p *tapsFilterPlan, phase, tile int, o Operands[T]) {
	parts, size := len(p.images)-1, p.shape.sizeW()
	if phase == 1 {
		combineParts(parts, size, tile, o)
		return
	}
	n := tile % parts
	lo, hi := splitRange(p.shape.Groups, p.ranges, tile/parts)
	tapsFilterSums(p, p.images[n], p.images[n+1], lo, hi, o.Workspace[n*size:][:size], o)
}

// tapsFilterSums sums the gradients of groups [lo, hi) over some images.
func tapsFilterSums[T Float](p *tapsFilterPlan, first, end, lo, hi int, partial []T, o Operands[T]) {
	copies, line := o.Scratch[:p.source], o.Scratch[p.source:][:p.gradient]
	sourcePlane, targetPlane := p.sourceH*p.sourceW, p.targetH*p.targetW
	for image := first; image < end; image++ {
		for strip := range p.strips {
			row := strip * p.rows
			rows := min(p.rows, p.targetH-row)
			clear(copies)
			clear(line)
			at := p.sourceOf(row, rows)
			add := o.Add || image > first || strip > 0
			for group := lo; group < hi; group++ {
				unit := image*p.shape.Groups + group
				for source := range p.sources {
					copySource(&p.tapsPlan, at, copies[p.offset(source, 0, 0):], o.B[(unit*p.sources+source)*sourcePlane:][:sourcePlane])
				}
				for target := range p.targets {
					from := o.A[(unit*p.targets+target)*targetPlane+row*p.targetW:]
					copyLinesOf(line, p.pitch, from, p.targetW, rows, p.targetW)
					sums := partial[(group*p.targets+target)*p.perTarget:][:p.perTarget]
					tapProducts(sums, line[:p.length(rows)], copies, &p.classes[0], add)
				}
			}
		}
	}
}

// tapProducts computes, or with add adds to, sums[tap] = sum over i of line[i]
// copies[class.offsets[tap]+i]. Terms are summed in tapLanes partial sums, which are added
// pairwise.
func tapProducts[T Float](sums, line, copies []T, class *tapClass, add bool) {
	if tapProductsFast(sums, line, copies, class, add) {
		return
	}
	for tap, at := range class.offsets {
		from := copies[at:][:len(line)]
		var lanes [tapLanes]T
		for i := 0; i < len(line); i += tapLanes {
			some, pixels := line[i:][:tapLanes], from[i:][:tapLanes]
			for lane := range lanes {
				lanes[lane] += some[lane] * pixels[lane]
			}
		}
		for n := tapLanes / 2; n > 0; n /= 2 {
			for lane := range n {
				lanes[lane] += lanes[lane+n]
			}
		}
		total := lanes[0]
		if add {
			total += sums[tap]
		}
		sums[tap] = total
	}
}

// combineParts adds one of combineTiles ranges of all partial sums.
func combineParts[T Float](parts, size, tile int, o Operands[T]) {
	lo, hi := splitRange(size, combineTiles(size), tile)
	SumRows(o.Out[lo:hi], o.Workspace[lo:], parts, size)
}
