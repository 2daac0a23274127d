package plan

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

// channelsPerLine is how many channels a line has.
func channelsPerLine(p Precision) int {
	if p == BF16 {
		return 2 * lineWords
	}
	return lineWords
}

// packing says which copy is made of planes of channels.
type packSpec struct {
	planes, channels           int
	planeStride, channelStride int // how many elements apart they are
	height, width              int // of a channel
	top, left                  int // lines of zeros before its rows and columns; below 0, rows that are left out
	rows, columns              int // of lines in a plane
	blocksFirst                bool
	chunks                     lineLayout
}

// chunking says how lines lie: whole, or in chunks of 16 bytes, the first ones of many lines side
// by side (kernels/nhwcgroup.cuh): of a block's all, or of wgmmaRows planes at each place.
type lineLayout int

const (
	wholeLines lineLayout = iota
	imageChunks
	filterChunks
)

// places are the lines of one block of channels.
func (k packSpec) lines() int { return k.planes * k.rows * k.columns }

// packed is a copy that was asked for.
type packKey struct {
	from *tensor.Buffer
	packSpec
}

// pack is an operand's packed copy, and the call that makes it unless an earlier one did.
func (p *planner) pack(from tensor.Argument, k packSpec) (*tensor.Buffer, []Call) {
	if to := p.copies[packKey{from.Buffer, k}]; to != nil {
		return to, nil
	}
	blocks, plane := ceilDiv(k.channels, channelsPerLine(p.Precision)), k.rows*k.columns
	planeTo, blockTo, ending := blocks*plane, plane, string(p.Precision)
	if k.blocksFirst {
		planeTo, blockTo = plane, k.lines()
	}
	lines, apart := blocks*k.lines(), []int{1, k.lines()}
	if k.chunks != wholeLines {
		ending = "chunks_" + ending
	}
	if k.chunks == filterChunks {
		groups := ceilDiv(k.planes, wgmmaRows) * wgmmaRows
		planeTo, blockTo, lines, apart = 1, plane*groups, blocks*plane*groups, []int{groups, wgmmaRows}
	}
	to := p.workBuffer(tensor.Int32, lines*lineWords)
	c := Call{
		Symbol: "nhwc_pack_" + ending, Blocks: [2]int{ceilDiv(plane, packedLines) * blocks * k.planes, 1}, Threads: GridStrideThreads,
		Arguments: []tensor.Argument{tensor.Out(to), from},
	}
	tiles, s := ceilDiv(plane, packedLines), p.unpoolGradOf(from.Buffer, k.channelStride)
	if s != nil && (k.width != 2*s.width || k.height != 2*s.height) {
		s = nil
	}
	if s != nil {
		c.Symbol, c.Arguments = "nhwc_pack_windows_"+ending, []tensor.Argument{tensor.Out(to), s.windows, tensor.In(s.argmax)}
	}
	var summedBy *unpoolGrad // whose windows' sums have an order of their own
	if s != nil && k.chunks == imageChunks {
		tiles, summedBy = ceilDiv(s.height*s.width, packedWindows), s
		c.Blocks[0] = tiles * blocks * k.planes
	}
	sums, summed, sum := from, 0, []Call(nil)
	if k.coversOnce() {
		if t := p.fusedSum(from.Buffer, k.channelStride, k.channels); t != nil {
			sums, sum = t.partialSums(p, tiles*k.planes)
			summed, t.alone = 1, t.packedAlone(k, summedBy)
		}
	}
	c.Arguments = append(c.Arguments, sums, tensor.Int(summed))
	for _, n := range []int{k.channels, k.planeStride, k.channelStride, k.height, k.width, k.top, k.left, k.rows, k.columns, blocks, planeTo, blockTo} {
		c.Arguments = append(c.Arguments, tensor.Int(n))
	}
	if k.chunks != wholeLines {
		c.Arguments = append(c.Arguments, tensor.Int(apart[0]), tensor.Int(apart[1]))
	}
	if p.copies != nil {
		p.copies[packKey{from.Buffer, k}] = to
	}
	if p.requested != nil {
		p.requested[from.Buffer] = append(p.requested[from.Buffer], k)
	}
	return to, append([]Call{c}, sum...)
}

// whole says whether all of planes of channels side by side is in the copy, once.
func (k packSpec) coversOnce() bool {
	inside := min(k.top, k.left) >= 0 && k.top+k.height <= k.rows && k.left+k.width <= k.columns
	return inside && k.channelStride == k.height*k.width && k.planeStride == k.channels*k.channelStride
}

// packed is the geometry of a total's launch by itself whose sums such a copy leaves in a step; of
// what windows spread out if their sums have an order of their own.
func (t *biasGradSum) packedAlone(k packSpec, s *unpoolGrad) lowering {
	pack := func(p *planner, l *tensor.Launch) []Call {
		p.biasGradSums = []*biasGradSum{t.forLaunch(l)}
		defer func() { p.biasGradSums = nil }()
		_, calls := p.pack(l.Arguments[1], k)
		return calls
	}
	if s == nil {
		return pack
	}
	return func(p *planner, l *tensor.Launch) []Call { return s.alone(p, l, pack) }
}

// forget drops the copies of what calls write to, but those that they write themselves.
func (p *planner) invalidate(calls []Call) {
	for _, c := range calls {
		for _, a := range c.Arguments {
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
func (k packSpec) cost(p *planner, chains int) float64 {
	bytes := 4*k.planes*k.channels*k.height*k.width + ceilDiv(k.channels, channelsPerLine(p.Precision))*k.lines()*lineBytes
	return CyclesPerLaunch + float64(bytes*chains)/(bytesPerCycle*float64(max(1, p.Multiprocessors)))
}

// writes says whether a call writes to a buffer.
func (c Call) writes(b *tensor.Buffer) bool {
	return slices.ContainsFunc(c.Arguments, func(a tensor.Argument) bool { return a.Buffer == b && a.Access&tensor.Write != 0 })
}
