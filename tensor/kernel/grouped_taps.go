package kernel

import "math"

// tapsPlan computes a grouped convolution, or its gradient with respect to the input, tap by tap:
// each tap adds a scalar times a line of pixels to a line of sums.
//
// The source planes of a group are first copied into a buffer, the copy, with zeros around them and
// divided into phases: phase (a, b) has the rows and columns whose numbers are a and b modulo the
// stride. Within a phase the pixels that a tap reads for consecutive outputs are consecutive, and
// all lines of outputs, with a few meaningless columns between them, are one long line:
//
//	sums[i] += w[tap] * copy[offsets[tap]+i]
//
// The gradient with respect to the input has a class (a, b) of rows and columns of dx for each
// remainder modulo the stride. Each class is a convolution of dout with its own subset of the taps.
// The classes are interleaved at the end.
type tapsPlan struct {
	shape                GroupedConv2D
	sources, targets     int // planes of a group that are read, and written
	sourceH, sourceW     int
	targetH, targetW     int
	splitH, splitW       int // phases of the source
	mergeH, mergeW       int // classes of the target
	top, left            int // rows and columns of the copy before the source's first ones
	rows                 int // of a class in a strip; the copy holds the source of one strip
	strips               int
	lines, pitch         int // number and distance of the lines of a phase in the copy
	spanH, spanW         int // rows and columns of the copy that one output needs
	classes              []tapClass
	planes               *planeTaps // the plan that works without the copy; nil if there is none
	perTarget            int        // elements from one target's weights to the next target's
	maxTaps              int
	tiles                int
	bias                 bool
	floor, ceiling       float32
	source, weights, out int // sizes of the parts of the scratch memory
}

// tapClass lists the taps of one class of outputs: the offset at which each reads the copy, and the
// index of its weight.
type tapClass struct {
	offsets []int32
	weights []int32 // indices for the first target; nil if the taps use all weights in order
	reach   int     // the largest offset
}

// epilogue is applied to sums before they are stored: min(max(sum + bias, floor), ceiling), where
// NaN stays.
type epilogue[T Float] struct{ bias, floor, ceiling T }

const (
	// stripElements bounds a strip's copy of the source to 20 KiB, so that two fit into a
	// first-level cache of 48 KiB.
	stripElements = 5 << 10
	// tapLanes is the number of outputs to which a line of sums is rounded up.
	tapLanes = 16
)

// forwardTaps prepares the forward direction.
func (g GroupedConv2D) forwardTaps() *tapsPlan {
	c := g.group()
	p := &tapsPlan{
		shape: g, sources: c.C, targets: c.K, sourceH: c.H, sourceW: c.W, targetH: c.P(), targetW: c.Q(),
		splitH: c.StrideH, splitW: c.StrideW, mergeH: 1, mergeW: 1, top: c.PadH, left: c.PadW,
		perTarget: c.C * c.R * c.S, bias: c.Bias, floor: float32(math.Inf(-1)), ceiling: float32(math.Inf(1)),
	}
	if c.ReLU {
		p.floor = 0
		if c.Ceiling > 0 {
			p.ceiling = c.Ceiling
		}
	}
	p.layOut((c.R-1)*c.DilationH+1, (c.S-1)*c.DilationW+1)
	var class tapClass
	for source := range c.C {
		for r := range c.R {
			for s := range c.S {
				class.offsets = append(class.offsets, p.offset(source, r*c.DilationH, s*c.DilationW))
			}
		}
	}
	p.classes = []tapClass{class}
	p.planes = g.forwardPlanes()
	p.finish()
	return p
}

// backwardTaps prepares the gradient with respect to the input.
func (g GroupedConv2D) backwardTaps() *tapsPlan {
	c := g.group()
	p := &tapsPlan{
		shape: g, sources: c.K, targets: c.C, sourceH: c.P(), sourceW: c.Q(), targetH: c.H, targetW: c.W,
		splitH: 1, splitW: 1, mergeH: c.StrideH, mergeW: c.StrideW,
		perTarget: c.R * c.S, floor: float32(math.Inf(-1)), ceiling: float32(math.Inf(1)),
	}
	vertical, firstH, lastH := shifts(c.R, c.DilationH, c.StrideH, c.PadH)
	horizontal, firstW, lastW := shifts(c.S, c.DilationW, c.StrideW, c.PadW)
	p.top, p.left = -firstH, -firstW
	p.layOut(lastH-firstH+1, lastW-firstW+1)
	for a := range p.mergeH {
		for b := range p.mergeW {
			class := tapClass{weights: []int32{}}
			for source := range c.K {
				for _, r := range vertical[a] {
					for _, s := range horizontal[b] {
						class.offsets = append(class.offsets, p.offset(source, r.by-firstH, s.by-firstW))
						class.weights = append(class.weights, int32((source*c.C*c.R+r.tap)*c.S+s.tap))
					}
				}
			}
			p.classes = append(p.classes, class)
		}
	}
	p.planes = g.backwardPlanes()
	p.finish()
	return p
}

// shift is a tap and the distance from an element of a class of dx to the element of dout that the
// tap multiplies, both counted within their lines.
type shift struct{ tap, by int }

// shifts returns the taps of each class of an axis in the order of their distances, and the least
// and greatest distance.
func shifts(taps, dilation, stride, pad int) (classes [][]shift, first, last int) {
	classes = make([][]shift, stride)
	first, last = math.MaxInt, math.MinInt
	for a := range stride {
		for tap := taps - 1; tap >= 0; tap-- {
			by := a + pad - tap*dilation
			if by%stride != 0 {
				continue
			}
			by /= stride
			classes[a] = append(classes[a], shift{tap, by})
			first, last = min(first, by), max(last, by)
		}
	}
	return classes, first, last
}

// layOut chooses the strips and the layout of the copy, where an output needs spanH x spanW
// elements.
func (p *tapsPlan) layOut(spanH, spanW int) {
	classRows, classColumns := ceilDiv(p.targetH, p.mergeH), ceilDiv(p.targetW, p.mergeW)
	p.spanH, p.spanW = spanH, spanW
	p.pitch = ceilDiv((classColumns-1)*p.splitW+spanW, p.splitW)
	size := func(rows int) int {
		return p.sources * p.splitH * p.splitW * ceilDiv((rows-1)*p.splitH+spanH, p.splitH) * p.pitch
	}
	p.rows = classRows
	for p.rows > 1 && size(p.rows) > stripElements {
		p.rows = (p.rows + 1) / 2
	}
	p.strips = ceilDiv(classRows, p.rows)
	p.rows = ceilDiv(classRows, p.strips)
	p.strips = ceilDiv(classRows, p.rows)
	p.lines = ceilDiv((p.rows-1)*p.splitH+spanH, p.splitH)
}

// offset returns the place in the copy of an element of a source, given its row and column there.
func (p *tapsPlan) offset(source, row, column int) int32 {
	phase := (source*p.splitH+row%p.splitH)*p.splitW + column%p.splitW
	return int32((phase*p.lines+row/p.splitH)*p.pitch + column/p.splitW)
}

// length returns the length of the line of sums of some rows.
func (p *tapsPlan) length(rows int) int { return ceilDiv(rows*p.pitch, tapLanes) * tapLanes }

// finish computes the sizes of memory and the number of tiles.
func (p *tapsPlan) finish() {
	for i, class := range p.classes {
		p.maxTaps = max(p.maxTaps, len(class.offsets))
		for _, at := range class.offsets {
			p.classes[i].reach = max(p.classes[i].reach, int(at))
		}
	}
	// A line of sums is rounded up, and the last tap's pixels lie beyond the last phase's end.
	p.source = ceilDiv(p.sources*p.splitH*p.splitW*p.lines*p.pitch+p.length(p.rows), tapLanes) * tapLanes
	p.weights = ceilDiv(p.maxTaps, tapLanes) * tapLanes
	p.out = len(p.classes) * p.length(p.rows)
	units := p.shape.B * p.shape.Groups
	work := p.sources*p.sourceH*p.sourceW + p.targets*p.targetH*p.targetW
	p.tiles = max(min(units, tileCount), units*work>>16)
	p.tiles = min(p.tiles, units)
}

func (p *tapsPlan) routine(sizeA, sizeB, sizeOut int) Routine {
	return Routine{
		Phases: []int{p.tiles}, Scratch: p.source + p.weights + p.out, Rows: p.shape.B, Unit: 1,
		kind: kindTaps, plan: p, sizeA: sizeA, sizeB: sizeB, sizeOut: sizeOut,
	}
}
