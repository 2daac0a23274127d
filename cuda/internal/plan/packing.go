package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// Convolutions in tf32 and bf16 may work on packed copies of their operands (kernels/nhwc.cuh). A
// copy has channels last, rounded once, in lines of 128 bytes: 32 channels of tf32 or 64 of bf16.
// An image has a line for each pixel, padding included, and as many blocks of lines as its channels
// need.
//
// For example, a 5 x 5 convolution with padding 2 of 64 channels of 14 x 14 pixels, in bf16, gets a
// copy of 18 x 18 lines per image. The pixel at (p, q) of the result needs, for tap (r, s), the
// line (p+r)*18 + q+s: another tap is the same lines, r*18 + s further on. So a block copies a
// range of lines to shared memory once, for all 25 taps, and looks up no address.
// kernels/im2col.cuh, which reads images as they are, computes an address and checks the border for
// every element.
//
// A copy is workspace. Launches of a step that read the same copy share it, so that the forward
// convolution's copy of an image also serves the filter's gradient.

const (
	lineWords     = 32
	lineBytes     = 4 * lineWords
	packedLines   = 32 // lines that a block packs
	packedWindows = 32 // windows whose elements a block packs in chunks
)

func channelsPerLine(p Precision) int {
	if p == BF16 {
		return 2 * lineWords
	}
	return lineWords
}

// packSpec describes a packed copy of planes x channels x height x width numbers. For images a
// plane is an image; for filters it is a filter, with its taps as width.
type packSpec struct {
	planes, channels           int
	planeStride, channelStride int  // in elements of what is copied
	height, width              int  // of a channel
	top, left                  int  // rows and columns of zeros before a plane's; if negative, rows and columns that are left out
	rows, columns              int  // of lines in a plane, padding included
	blocksFirst                bool // lines are ordered by block of channels, then plane; otherwise by plane, then block
	chunks                     lineLayout
}

// lineLayout is how the 128 bytes of lines lie in memory. Kernels by wgmma (kernels/nhwcgroup.cuh)
// need them in chunks of 16 bytes, with the first chunks of many lines one behind the other, then
// all the second ones. The first chunks of any eight neighbouring lines are then a core matrix, as
// the PTX ISA calls the 8 x 16 bytes that a matrix descriptor without swizzling is made of,
// wherever the first of them is.
type lineLayout int

const (
	wholeLines   lineLayout = iota
	imageChunks             // the chunks of all lines of a block of channels
	filterChunks            // the chunks of wgmmaRows filters, for each tap
)

// lines is the number of lines of one block of channels.
func (k packSpec) lines() int { return k.planes * k.rows * k.columns }

// packKey identifies a packed copy.
type packKey struct {
	from *tensor.Buffer
	packSpec
}

// pack returns an operand's packed copy, and the calls that make it, unless an earlier launch has
// made it. The packing kernel reads all of a gradient, so it may also leave the sums of its
// channels (biasgrad.go), and it reads a gradient of pooling by its windows (unpool.go).
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
	if p.copies != nil {
		p.copies[packKey{from.Buffer, k}] = to
	}
	if p.requested != nil {
		p.requested[from.Buffer] = append(p.requested[from.Buffer], k)
	}
	return to, append([]Call{c}, sum...)
}

// coversOnce reports whether the copy has every element of contiguous planes exactly once, so that
// sums over it are sums over the original.
func (k packSpec) coversOnce() bool {
	inside := min(k.top, k.left) >= 0 && k.top+k.height <= k.rows && k.left+k.width <= k.columns
	return inside && k.channelStride == k.height*k.width && k.planeStride == k.channels*k.channelStride
}

// packedSeparately lowers, on its own, the launch of a bias gradient whose sums such a packing call
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

// cost estimates the cycles of packing: a launch, and the bytes read and written.
func (k packSpec) cost(p *planner, chains int) float64 {
	bytes := 4*k.planes*k.channels*k.height*k.width + ceilDiv(k.channels, channelsPerLine(p.Precision))*k.lines()*lineBytes
	return CyclesPerLaunch + float64(bytes*chains)/(bytesPerCycle*float64(max(1, p.Multiprocessors)))
}

func (c Call) writes(b *tensor.Buffer) bool {
	return slices.ContainsFunc(c.Arguments, func(a tensor.Argument) bool { return a.Buffer == b && a.Access&tensor.Write != 0 })
}
