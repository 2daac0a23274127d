package cuda

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// Convolutions in tf32 and bf16 may work on packed copies of their operands (kernels/nhwc.cuh):
// channels last and rounded once, in lines of 128 bytes. A copy that several launches read is made
// once.

const (
	lineWords     = 32
	lineBytes     = 4 * lineWords
	packedLines   = 32 // that a block packs
	packedWindows = 32 // whose elements a block packs in chunks
)

// numbersOf is how many channels a line has.
func numbersOf(p Precision) int {
	if p == BF16 {
		return 2 * lineWords
	}
	return lineWords
}

// packing says which copy is made of planes of channels.
type packing struct {
	planes, channels       int
	planeFrom, channelFrom int // how many elements apart they are
	height, width          int // of a channel
	top, left              int // lines of zeros before its rows and columns; below 0, rows that are left out
	rows, columns          int // of lines in a plane
	blocksFirst            bool
	chunks                 chunking
}

// chunking says how lines lie: whole, or in chunks of 16 bytes, the first ones of many lines side
// by side (kernels/nhwcgroup.cuh): of a block's all, or of groupRows planes at each place.
type chunking int

const (
	wholeLines chunking = iota
	imageChunks
	filterChunks
)

// places are the lines of one block of channels.
func (k packing) places() int { return k.planes * k.rows * k.columns }

// packed is a copy that was asked for.
type packed struct {
	from *tensor.Buffer
	packing
}

// pack is an operand's packed copy, and the call that makes it unless an earlier one did.
func (p *placement) pack(from tensor.Argument, k packing) (*tensor.Buffer, []call) {
	if to := p.copies[packed{from.Buffer, k}]; to != nil {
		return to, nil
	}
	blocks, plane := ceil(k.channels, numbersOf(p.precision)), k.rows*k.columns
	planeTo, blockTo, ending := blocks*plane, plane, string(p.precision)
	if k.blocksFirst {
		planeTo, blockTo = plane, k.places()
	}
	lines, apart := blocks*k.places(), []int{1, k.places()}
	if k.chunks != wholeLines {
		ending = "chunks_" + ending
	}
	if k.chunks == filterChunks {
		groups := ceil(k.planes, groupRows) * groupRows
		planeTo, blockTo, lines, apart = 1, plane*groups, blocks*plane*groups, []int{groups, groupRows}
	}
	to := p.work(tensor.Int32, lines*lineWords)
	c := call{
		symbol: "nhwc_pack_" + ending, blocks: [2]int{ceil(plane, packedLines) * blocks * k.planes, 1}, threads: stridingThreads,
		arguments: []tensor.Argument{tensor.Out(to), from},
	}
	tiles, s := ceil(plane, packedLines), p.spreadOf(from.Buffer, k.channelFrom)
	if s != nil && (k.width != 2*s.width || k.height != 2*s.height) {
		s = nil
	}
	if s != nil {
		c.symbol, c.arguments = "nhwc_pack_windows_"+ending, []tensor.Argument{tensor.Out(to), s.windows, tensor.In(s.which)}
	}
	var summedBy *spread // whose windows' sums have an order of their own
	if s != nil && k.chunks == imageChunks {
		tiles, summedBy = ceil(s.height*s.width, packedWindows), s
		c.blocks[0] = tiles * blocks * k.planes
	}
	sums, summed, sum := from, 0, []call(nil)
	if k.whole() {
		if t := p.passing(from.Buffer, k.channelFrom, k.channels); t != nil {
			sums, sum = t.table(p, tiles*k.planes)
			summed, t.alone = 1, t.packed(k, summedBy)
		}
	}
	c.arguments = append(c.arguments, sums, tensor.Int(summed))
	for _, n := range []int{k.channels, k.planeFrom, k.channelFrom, k.height, k.width, k.top, k.left, k.rows, k.columns, blocks, planeTo, blockTo} {
		c.arguments = append(c.arguments, tensor.Int(n))
	}
	if k.chunks != wholeLines {
		c.arguments = append(c.arguments, tensor.Int(apart[0]), tensor.Int(apart[1]))
	}
	if p.copies != nil {
		p.copies[packed{from.Buffer, k}] = to
	}
	if p.wanted != nil {
		p.wanted[from.Buffer] = append(p.wanted[from.Buffer], k)
	}
	return to, append([]call{c}, sum...)
}

// whole says whether all of planes of channels side by side is in the copy, once.
func (k packing) whole() bool {
	inside := min(k.top, k.left) >= 0 && k.top+k.height <= k.rows && k.left+k.width <= k.columns
	return inside && k.channelFrom == k.height*k.width && k.planeFrom == k.channels*k.channelFrom
}

// packed is the geometry of a total's launch by itself whose sums such a copy leaves in a step; of
// what windows spread out if their sums have an order of their own.
func (t *total) packed(k packing, s *spread) geometry {
	pack := func(p *placement, l *tensor.Launch) []call {
		p.totals = []*total{t.of(l)}
		defer func() { p.totals = nil }()
		_, calls := p.pack(l.Arguments[1], k)
		return calls
	}
	if s == nil {
		return pack
	}
	return func(p *placement, l *tensor.Launch) []call { return s.alone(p, l, pack) }
}

// forget drops the copies of what calls write to, but those that they write themselves.
func (p *placement) forget(calls []call) {
	for _, c := range calls {
		for _, a := range c.arguments {
			if a.Buffer == nil || a.Access&tensor.Write == 0 {
				continue
			}
			for k, to := range p.copies {
				if k.from.Overlaps(a.Buffer) && !c.writes(to) {
					delete(p.copies, k)
				}
			}
		}
	}
}

// cost estimates the cycles of packing: a launch, and the bytes.
func (k packing) cost(p *placement, chains int) float64 {
	bytes := 4*k.planes*k.channels*k.height*k.width + ceil(k.channels, numbersOf(p.precision))*k.places()*lineBytes
	return costOfLaunch + float64(bytes*chains)/(bytesPerCycle*float64(max(1, p.multiprocessors)))
}

// writes says whether a call writes to a buffer.
func (c call) writes(b *tensor.Buffer) bool {
	return slices.ContainsFunc(c.arguments, func(a tensor.Argument) bool { return a.Buffer == b && a.Access&tensor.Write != 0 })
}
