package plan

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// windowForward is a convolution of images with few channels on the tensor cores
// (kernels/windowforward.cuh). A block computes 32 filters of blockImages images. A thread has
// whole pooling windows, which it pools in registers.
type windowForward struct {
	*product
	shape          convShape
	symbol         string
	rowStride      int // of an image in shared memory, in words
	channelStride  int // in words
	blockImages    int
	imagesPerRound int // that are in shared memory at once
	tableWords     int // of the constants of a warp's lanes
}

// tapWords returns the words of a filter's row in one channel, and the most words of a filter that
// a kernel takes. In bf16 a word has two taps.
func (s convShape) tapWords(p Precision) (line, most int) {
	if p == BF16 {
		return ceilDiv(s.S, 2), 16
	}
	return s.S, 32
}

// asWindowForward returns the convolution by these kernels, divided for a number of chains, and its
// cycles; nil if there is no kernel.
func (g *product) asWindowForward(p *planner, chains int) (f *windowForward, least float64) {
	if p.NoWindows || !g.forward || !g.canUseWindowMMA(p) {
		return nil, math.Inf(1)
	}
	s := convShapeOf(g)
	words, most := s.tapWords(p.Precision)
	if s.C*s.R*words > most {
		return nil, math.Inf(1)
	}
	f = &windowForward{product: g, shape: s, symbol: "conv2d_windows_pool_" + string(p.Precision), tableWords: most / 4 * 6 * warp}
	f.rowStride, f.channelStride = s.sharedStrides(words * channelsPerLine(p.Precision) / lineWords)
	least = math.Inf(1)
	best := *f
	for f.blockImages = 1; f.blockImages <= s.B; f.blockImages++ {
		for f.imagesPerRound = s.imagesPerBlock(f.blockImages, f.channelStride); f.imagesPerRound > 0; f.imagesPerRound-- {
			if cost := f.cost(p, chains); cost < least && f.shared() <= p.Shared {
				best, least = *f, cost
			}
		}
	}
	if g.pool == nil {
		best.symbol = "conv2d_windows_whole_" + string(p.Precision)
	}
	return &best, least
}

// shared is a block's shared memory: the position of each window in an image and in a packed copy,
// the filters, the lanes' constants, and for each image that is there at once the argmax bytes and
// the pixels.
func (f *windowForward) shared() int {
	s := f.shape
	places, filters := 2*ceilDiv(s.windows(), mmaWindows)*mmaWindows, windowFilters*s.C*s.taps()
	return 4*(places+filters+f.tableWords) + f.imagesPerRound*(windowFilters*s.windows()+4*s.C*f.channelStride)
}

// cost estimates the cycles of the kernel that pools.
func (f *windowForward) cost(p *planner, chains int) float64 {
	resident := 2
	if p.Precision == TF32 {
		resident = 1 // by its registers
	}
	blocks := ceilDiv(f.shape.K, windowFilters) * ceilDiv(f.shape.B, f.blockImages) * chains
	work := f.shape.mmaCycles(f.symbol, f.blockImages, f.imagesPerRound)
	bytes := f.blockImages * (4*f.shape.C*f.shape.H*f.shape.W + f.shape.windows()*windowFilters*(tensor.Float32.Size()+tensor.Uint8.Size()))
	return speedWindowMMA.limitedTo(resident).cycles(p, blocks, resident, work, float64(bytes))
}

// lowerWindowForward returns the calls of a convolution of few channels, or nil if other kernels
// are cheaper. The choice changes the order of sums, so it is made as for one chain, and by the
// cost of the kernel that pools, even if another one is needed.
func (g *product) lowerWindowForward(p *planner) []Call {
	if g.epilogue&epilogueAtMost6 != 0 {
		return nil // the kernel has no such epilogue
	}
	if _, least := g.asWindowForward(p, 1); math.IsInf(least, 1) || least >= g.forwardCostWithoutWindows(p) {
		return nil
	}
	f, cycles := g.asWindowForward(p, p.Chains)
	s, x := f.shape, g.operands[0]
	blocks := [2]int{ceilDiv(s.K, windowFilters), ceilDiv(s.B, f.blockImages)}
	out, pooled, which, copied, copies := g.out, x, x, x, 0
	var k packSpec
	if g.pool != nil {
		out, pooled, which = x, tensor.Out(g.pool.pooled), g.argmaxOr(x)
		if to := f.packedOutput(p, &k); to != nil {
			copied, copies = tensor.Out(to), 1+int(k.chunks)
			blocks[0] = ceilDiv(s.K, channelsPerLine(p.Precision)) * (channelsPerLine(p.Precision) / windowFilters)
		}
	}
	arguments := append([]tensor.Argument{out, x, g.operands[1], g.biasOr(x), pooled, which, copied}, g.sizes[:15]...)
	for _, n := range []int{copies, k.rows, k.columns, k.top, k.left, g.epilogue, f.blockImages, f.imagesPerRound, f.rowStride, f.channelStride} {
		arguments = append(arguments, tensor.Int(n))
	}
	c := Call{Symbol: f.symbol, Blocks: blocks, Threads: warp * mmaWarps, Shared: f.shared(), Arguments: arguments, Cycles: cycles}
	if copies != 0 {
		less := c
		less.Symbol, less.Arguments = "conv2d_windows_pack_"+string(p.Precision), slices.Clone(arguments)
		less.Arguments[4] = x // instead of the maxima
		c.droppable = &droppable{result: g.pool.pooled, without: less}
	}
	return []Call{c}
}

// forwardCostWithoutWindows estimates the lowest cost of a forward convolution for one chain
// without these kernels.
func (g *product) forwardCostWithoutWindows(p *planner) float64 {
	cost := g.costUnpacked(p)
	if on := g.asPacked(); g.canPack(p) {
		_, least := on.cheapest(p, 1)
		cost = min(cost, least+on.packCost(p))
	}
	return cost
}

// packedOutput returns a packed copy of the maxima for a later launch of the step that requests
// one, and sets k to its layout. It returns nil if there is none that the kernel can write.
func (f *windowForward) packedOutput(p *planner, k *packSpec) *tensor.Buffer {
	s := f.shape
	for _, *k = range p.requested[f.pool.pooled] {
		fits := k.top >= 0 && k.left >= 0 && k.top+s.P/2 <= k.rows && k.left+s.Q/2 <= k.columns
		own := packSpec{
			planes: s.B, channels: s.K, planeStride: s.K * s.windows(), channelStride: s.windows(), height: s.P / 2, width: s.Q / 2,
			top: k.top, left: k.left, rows: k.rows, columns: k.columns, blocksFirst: true, chunks: min(k.chunks, imageChunks),
		}
		if fits && *k == own {
			to := p.workBuffer(tensor.Int32, ceilDiv(k.channels, channelsPerLine(p.Precision))*k.lines()*lineWords)
			p.copies[packKey{f.pool.pooled, *k}] = to
			return to
		}
	}
	*k = packSpec{}
	return nil
}
