package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// pack returns an operand's packed copy, and the calls that make it, unless an earlier launch has
// made it. The packing kernel reads all of a gradient, so it may also sum its channels
// (biasgrad.go). It reads a gradient of pooling in the compact form of its windows (unpool.go).
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
	name := "nhwc_pack_"
	if k.spread != [2]int{} {
		name = "nhwc_pack_spread_"
	}
	c := Call{
		Symbol: name + ending, Blocks: [2]int{ceilDiv(plane, packedLines) * blocks * k.planes, 1}, Threads: GridStrideThreads,
		Arguments: []tensor.Argument{tensor.Out(to), from},
	}
	tiles, s := ceilDiv(plane, packedLines), p.unpoolGradOf(from.Buffer, k.channelStride)
	if s != nil && (k.width != 2*s.width || k.height != 2*s.height || k.spread != [2]int{}) {
		s = nil
	}
	if s != nil {
		c.Symbol, c.Arguments = "nhwc_pack_windows_"+ending, []tensor.Argument{tensor.Out(to), s.windows, tensor.In(s.argmax)}
	}
	// With chunks the kernel goes through windows instead of lines, so that its sums have another
	// order, which the launch on its own must have, too.
	var summedBy *unpoolGrad
	if s != nil && k.chunks == imageChunks {
		tiles, summedBy = ceilDiv(s.height*s.width, packedWindows), s
		c.Blocks[0] = tiles * blocks * k.planes
	}
	sums, summed, sum := from, 0, []Call(nil)
	if k.coversOnce() {
		if t := p.fusedSum(from.Buffer, k.channelStride, k.channels); t != nil {
			sums, sum = t.partialSums(p, tiles*k.planes)
			summed, t.separate = 1, t.packedSeparately(k, summedBy)
		}
	}
	c.Arguments = append(c.Arguments, sums, tensor.Int(summed))
	for _, n := range []int{k.channels, k.planeStride, k.channelStride, k.height, k.width, k.top, k.left, k.rows, k.columns, blocks, planeTo, blockTo} {
		c.Arguments = append(c.Arguments, tensor.Int(n))
	}
	if k.chunks != wholeLines {
		c.Arguments = append(c.Arguments, tensor.Int(apart[0]), tensor.Int(apart[1]))
	}
	if k.spread != [2]int{} {
		c.Arguments = append(c.Arguments, tensor.Int(k.spread[0]), tensor.Int(k.spread[1]))
	}
	if p.copies != nil {
		p.copies[packKey{from.Buffer, k}] = to
	}
	if p.requested != nil {
		p.requested[from.Buffer] = append(p.requested[from.Buffer], k)
	}
	return to, append([]Call{c}, sum...)
}

// packedSeparately returns the separate lowering of a bias gradient whose sums such a packing call
// makes in a step. It packs, too, so that the sums have the same order, and ignores the copy.
func (t *biasGradSum) packedSeparately(k packSpec, s *unpoolGrad) lowering {
	pack := func(p *planner, l *tensor.Launch) []Call {
		p.biasGradSums = []*biasGradSum{t.forLaunch(l)}
		defer func() { p.biasGradSums = nil }()
		_, calls := p.pack(l.Arguments[1], k)
		return calls
	}
	if s == nil {
		return pack
	}
	return func(p *planner, l *tensor.Launch) []Call { return s.separate(p, l, pack) }
}

// invalidate drops the packed copies of buffers that calls write to, except copies that the same
// call makes.
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

// cost estimates the cycles of packing for one chain: a launch, and the bytes read and written.
func (k packSpec) cost(p *planner) float64 {
	bytes := 4*k.planes*k.channels*k.height*k.width + ceilDiv(k.channels, channelsPerLine(p.Precision))*k.lines()*lineBytes
	return CyclesPerLaunch + float64(bytes)/(bytesPerCycle*float64(max(1, p.Multiprocessors)))
}

func (c Call) writes(b *tensor.Buffer) bool {
	return slices.ContainsFunc(c.Arguments, func(a tensor.Argument) bool { return a.Buffer == b && a.Access&tensor.Write != 0 })
}
