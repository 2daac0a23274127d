package plan

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// The gradient of a convolution's filter may use wgmma, too (kernels/nhwcgroupfilter.cuh). Its
// depth is pixels: sixteen lines at a time, the K of one wgmma. Where a row of pixels is no
// multiple of sixteen, the lines behind it are the zeros of the copy's border, and add nothing.

// wgmmaFilterGrad is such a gradient. A block computes wgmmaRows filters x one block of channels x
// a few taps, for one slice of the images' rows.
type wgmmaFilterGrad struct {
	*packedFilterGrad
	stepsPerRow   int // wgmma steps of linesPerStep lines
	stageRows     int // rows of pixels in a stage
	stages        int // of all images
	tapBlocks     int // blocks that share the taps
	imageLines    int // the most lines of the image in a stage
	gradientLines int // the most lines of the gradient in a stage
	sliceStages   int // stages of a slice
	slices        int
}

// Sizes in the kernel.
const (
	linesPerStep       = 16
	maxFilterTaps      = 9 // of a block
	wgmmaFilterThreads = 3*128 + 128
	// tapSumBytes is the size of one tap's sums of earlier slices, in shared memory.
	tapSumBytes = 4 * wgmmaRows * wgmmaRows
	// stageBarrierBytes is the size of a stage's two mbarriers.
	stageBarrierBytes = 8 * 2
	// A block has up to maxStages stages, if they fit into shared memory. A stage is small enough
	// that minStages of them fit next to the sums of usualTaps taps.
	minStages, maxStages = 3, 8
	usualTaps            = 7
)

// speedWGMMAFilter is assumed to be close to the speed of products with 112 columns and more. The
// left operand is in registers, where several taps use it, so that shared memory only has to
// deliver the right one. A multiprocessor holds one block.
var speedWGMMAFilter = speed{12, 10}

// asWGMMA returns the gradient by wgmma, or nil if there is no kernel for it.
func (f *packedFilterGrad) asWGMMA(p *planner) *wgmmaFilterGrad {
	s, k := f.shape, f.shape.packGradient()
	g := wgmmaFilterGrad{packedFilterGrad: f, stepsPerRow: ceilDiv(s.Q, linesPerStep)}
	behind := linesPerStep*g.stepsPerRow <= k.columns && (k.top > 0 || k.left+linesPerStep*g.stepsPerRow <= k.columns)
	if !p.WGMMA || p.Precision != BF16 || s.strideH != 1 || s.strideW != 1 || min(k.top, k.left) < 0 || !behind || speedWGMMAFilter.full == 0 {
		return nil
	}
	// Divide images into equal parts, as large as possible so that minStages stages fit into shared
	// memory next to the sums.
	for parts := 1; parts <= s.P; parts++ {
		g.stageRows = ceilDiv(s.P, parts)
		g.stages = s.B * ceilDiv(s.P, g.stageRows)
		if g = g.splitTaps(ceilDiv(f.pixels.taps, usualTaps)); g.sharedBytes(minStages, true) <= p.Shared {
			return &g
		}
	}
	return nil
}

// splitTaps returns g with its taps divided among shares blocks, whose numbers of taps differ by at
// most one.
func (g wgmmaFilterGrad) splitTaps(shares int) wgmmaFilterGrad {
	f, reach := g.packedFilterGrad, 0
	for share, tap := 0, 0; share < shares; share++ {
		low, high := math.MaxInt, 0
		for end := tap + (f.pixels.taps+shares-1-share)/shares; tap < end; tap++ {
			at := tap/f.pixels.tapColumns*f.pixels.tapRowStride + tap%f.pixels.tapColumns*f.pixels.tapColumnStride
			low, high = min(low, at), max(high, at)
		}
		reach = max(reach, high-low)
	}
	g.tapBlocks = shares
	g.gradientLines = (g.stageRows-1)*f.shape.packGradient().columns + linesPerStep*g.stepsPerRow
	g.imageLines = (g.stageRows-1)*f.image.columns + linesPerStep*g.stepsPerRow + reach
	return g
}

// sharedBytes is a block's shared memory with a number of stages, and with the sums of earlier
// slices if it has them.
func (g wgmmaFilterGrad) sharedBytes(stages int, sums bool) int {
	bytes := stages * (lineBytes*(g.imageLines+g.gradientLines) + stageBarrierBytes)
	if sums {
		bytes += tapSumBytes * ceilDiv(g.pixels.taps, g.tapBlocks)
	}
	return bytes
}

// stagesInShared returns how many stages fit into shared memory.
func (g wgmmaFilterGrad) stagesInShared(p *planner, parallel bool) int {
	depth := maxStages
	for depth > 0 && g.sharedBytes(depth, !parallel) > p.Shared {
		depth--
	}
	return depth
}

func (g wgmmaFilterGrad) blocks() int {
	return g.tapBlocks * ceilDiv(g.shape.C, wgmmaRows) * ceilDiv(g.shape.K, wgmmaRows)
}

// cheapest divides the taps among the best number of blocks, which does not change any sum. It
// returns the cycles, including the sum of the slices.
func (g wgmmaFilterGrad) cheapest(p *planner, chains int, parallel bool) (best wgmmaFilterGrad, least float64) {
	taps := g.pixels.taps
	best, least = g, math.Inf(1)
	for shares := ceilDiv(taps, maxFilterTaps); shares <= min(taps, ceilDiv(taps, usualTaps)+1); shares++ {
		try := g.splitTaps(shares)
		if try.stagesInShared(p, parallel) < minStages {
			continue
		}
		if cost := try.cost(p, chains, parallel); cost < least {
			best, least = try, cost
		}
	}
	return best, least
}

func (g wgmmaFilterGrad) cost(p *planner, chains int, parallel bool) float64 {
	blocks, stages := g.blocks()*chains, g.stages
	if parallel {
		blocks, stages = blocks*g.slices, g.sliceStages
	}
	taps := float64(g.pixels.taps) / float64(g.tapBlocks)
	work := taps * float64(wgmmaRows*wgmmaRows*linesPerStep*g.stepsPerRow*g.stageRows*stages) / macsPerCycle
	bytes := float64(lineBytes * stages * (g.imageLines + g.gradientLines))
	sliced := *g.packedFilterGrad
	sliced.slices = g.slices
	return speedWGMMAFilter.cycles(p, blocks, 1, work, bytes) + sliced.sumCost(p, chains, parallel)
}

// split sets the number of slices, as for one chain.
func (g *wgmmaFilterGrad) split(p *planner) {
	least := math.Inf(1)
	for _, count := range g.sliceCounts() {
		if count > g.stages {
			break
		}
		try := *g
		try.sliceStages = ceilDiv(g.stages, count)
		try.slices = ceilDiv(g.stages, try.sliceStages)
		if _, cost := try.cheapest(p, 1, true); cost < least {
			least, g.sliceStages, g.slices = cost, try.sliceStages, try.slices
		}
	}
}

// choose returns the cheapest division for a number of chains, whether each slice gets separate
// blocks, and the cycles.
func (g wgmmaFilterGrad) choose(p *planner, chains int) (best wgmmaFilterGrad, parallel bool, cycles float64) {
	turns, cycles := g.cheapest(p, chains, false)
	together, other := g.cheapest(p, chains, true)
	if g.slices > 1 && other <= cycles {
		return together, true, other
	}
	return turns, false, cycles
}

// beats reports whether this kernel is better than packedFilterGrad's, by the product of the costs
// for one chain and for manyChains.
func (g *wgmmaFilterGrad) beats(p *planner) bool {
	f := *g.packedFilterGrad
	if _, _, fits := f.split(p); !fits {
		return true
	}
	ours, others := 1.0, 1.0
	for _, chains := range []int{1, manyChains} {
		_, _, one := g.choose(p, chains)
		ours, others = ours*one, others*min(f.cost(p, chains, false), f.cost(p, chains, true))
	}
	return ours < others
}

// costWithPacking estimates the cycles for one chain, packing included.
func (g *wgmmaFilterGrad) costWithPacking(p *planner) float64 {
	_, cost := g.cheapest(p, 1, true)
	return cost + g.image.cost(p) + g.shape.packGradient().cost(p)
}

// lower returns the calls: those that pack the gradient and the image in chunks, unless an earlier
// one has, the products of slices of the pixels, and their sum.
func (f *wgmmaFilterGrad) lower(p *planner) []Call {
	g, parallel, cycles := f.choose(p, p.Chains)
	image, gradient := g.image, g.shape.packGradient()
	image.chunks, gradient.chunks = imageChunks, imageChunks
	dout, calls := p.pack(g.operands[0], gradient)
	x, more := p.pack(g.operands[1], image)
	slices, depth := 1, g.stagesInShared(p, parallel)
	if parallel {
		slices, depth = g.slices, min(depth, max(g.sliceStages, 2))
	}
	partial := p.workBuffer(tensor.Float32, slices*g.shape.K*g.pixels.taps*g.paddedChannels(p))
	arguments := []tensor.Argument{tensor.Out(partial), tensor.In(dout), tensor.In(x)}
	for _, n := range []int{
		g.shape.K, g.image.planes, g.image.rows, g.image.columns, g.pixels.P, g.pixels.Q, ceilDiv(g.shape.C, wgmmaRows), g.pixels.taps,
		g.pixels.tapColumns, g.pixels.tapRowStride, g.pixels.tapColumnStride, gradient.rows, gradient.columns, gradient.top*gradient.columns + gradient.left,
		ceilDiv(g.shape.K, wgmmaRows), g.stepsPerRow, g.stageRows, g.sliceStages, g.imageLines, g.gradientLines, depth, g.tapBlocks,
	} {
		arguments = append(arguments, tensor.Int(n))
	}
	sliced := *g.packedFilterGrad
	sliced.slices = g.slices
	return append(append(calls, more...), Call{
		Symbol: "conv2d_nhwc_group_filter_bf16", Blocks: [2]int{g.blocks(), slices}, Threads: wgmmaFilterThreads,
		Shared: g.sharedBytes(depth, !parallel), Arguments: arguments,
		Cycles: cycles - sliced.sumCost(p, p.Chains, parallel),
	}, g.sumSlices(p, partial, slices))
}
