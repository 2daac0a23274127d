package plan

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// The gradient of a convolution's filter may go by wgmma, too (kernels/nhwcgroupfilter.cuh): its
// depth are sixteen lines of the gradient's copy at a time, whose border makes them zeros behind a
// row's pixels.

// wgmmaFilterGrad is such a gradient: a block for each wgmmaRows filters, block of channels and few
// taps, of each slice of the images' rows.
type wgmmaFilterGrad struct {
	*packedFilterGrad
	stepsPerRow               int // of linesPerStep lines, of a row
	stageRows                 int // of a stage
	stages                    int // of all images
	tapBlocks                 int // blocks that have the taps together
	imageLines, gradientLines int // lines of a stage, at most
	sliceStages               int // stages of a slice
	slices                    int // the slices
}

// Of the kernel.
const (
	linesPerStep       = 16
	maxFilterTaps      = 9 // of a block, at most
	wgmmaFilterThreads = 3*128 + 128
	// tapSumBytes are the bytes of a tap's sums of earlier slices, in shared memory.
	tapSumBytes = 4 * wgmmaRows * wgmmaRows
	// stageBarrierBytes are the bytes of a stage's two barriers.
	stageBarrierBytes = 8 * 2
	// A block has as many stages as shared memory has room for, up to maxStages. Stages are cut
	// small enough for minStages of them to fit next to the sums of usualTaps taps.
	minStages, maxStages = 3, 8
	usualTaps            = 7
)

// speedWGMMAFilter is taken for that of products of 112 columns and more: a product's left operand
// is in registers, for a few taps, so that shared memory has the other one to give. A
// multiprocessor holds one block, whose warps never wait for all others.
var speedWGMMAFilter = speed{12, 10}

// asWGMMA is nil if there is no kernel for a gradient.
func (f *packedFilterGrad) asWGMMA(p *planner) *wgmmaFilterGrad {
	s, k := f.shape, f.shape.packGradient()
	g := wgmmaFilterGrad{packedFilterGrad: f, stepsPerRow: ceilDiv(s.Q, linesPerStep)}
	behind := linesPerStep*g.stepsPerRow <= k.columns && (k.top > 0 || k.left+linesPerStep*g.stepsPerRow <= k.columns)
	if !p.WGMMA || p.Precision != BF16 || s.strideH != 1 || s.strideW != 1 || min(k.top, k.left) < 0 || !behind || speedWGMMAFilter.full == 0 {
		return nil
	}
	// Equal parts of an image, not too large for some stages and sums.
	for parts := 1; parts <= s.P; parts++ {
		g.stageRows = ceilDiv(s.P, parts)
		g.stages = s.B * ceilDiv(s.P, g.stageRows)
		if g = g.splitTaps(ceilDiv(f.pixels.taps, usualTaps)); g.sharedBytes(minStages, true) <= p.Shared {
			return &g
		}
	}
	return nil
}

// shared returns g with its taps divided among shares blocks, whose numbers of taps differ by at
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

// bytes are a block's of shared memory, with stages and perhaps the sums of earlier slices.
func (g wgmmaFilterGrad) sharedBytes(stages int, sums bool) int {
	bytes := stages * (lineBytes*(g.imageLines+g.gradientLines) + stageBarrierBytes)
	if sums {
		bytes += tapSumBytes * ceilDiv(g.pixels.taps, g.tapBlocks)
	}
	return bytes
}

// depth is the stages in shared memory.
func (g wgmmaFilterGrad) stagesInShared(p *planner, apart bool) int {
	depth := maxStages
	for depth > 0 && g.sharedBytes(depth, !apart) > p.Shared {
		depth--
	}
	return depth
}

func (g wgmmaFilterGrad) blocks() int {
	return g.tapBlocks * ceilDiv(g.shape.C, wgmmaRows) * ceilDiv(g.shape.K, wgmmaRows)
}

// cheapest shares the taps as is best, which makes no difference to the sums. It estimates the
// cycles, the sum of the slices included, as packedFilterGrad.cost does.
func (g wgmmaFilterGrad) cheapest(p *planner, chains int, apart bool) (best wgmmaFilterGrad, least float64) {
	taps := g.pixels.taps
	best, least = g, math.Inf(1)
	for shares := ceilDiv(taps, maxFilterTaps); shares <= min(taps, ceilDiv(taps, usualTaps)+1); shares++ {
		try := g.splitTaps(shares)
		if try.stagesInShared(p, apart) < minStages {
			continue
		}
		if cost := try.cost(p, chains, apart); cost < least {
			best, least = try, cost
		}
	}
	return best, least
}

func (g wgmmaFilterGrad) cost(p *planner, chains int, apart bool) float64 {
	blocks, stages := g.blocks()*chains, g.stages
	if apart {
		blocks, stages = blocks*g.slices, g.sliceStages
	}
	taps := float64(g.pixels.taps) / float64(g.tapBlocks)
	work := taps * float64(wgmmaRows*wgmmaRows*linesPerStep*g.stepsPerRow*g.stageRows*stages) / macsPerCycle
	bytes := float64(lineBytes * stages * (g.imageLines + g.gradientLines))
	sliced := *g.packedFilterGrad
	sliced.slices = g.slices
	return speedWGMMAFilter.cycles(p, blocks, 1, work, bytes) + sliced.sumCost(p, chains, apart)
}

// cut finds the slices as for one chain.
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

// planned is how some chains' gradients are computed: whether each slice has blocks of its own, and
// the cost.
func (g wgmmaFilterGrad) choose(p *planner, chains int) (best wgmmaFilterGrad, apart bool, cycles float64) {
	turns, cycles := g.cheapest(p, chains, false)
	together, other := g.cheapest(p, chains, true)
	if g.slices > 1 && other <= cycles {
		return together, true, other
	}
	return turns, false, cycles
}

// beats says whether this kernel is better than packedFilterGrad's, for one chain and for many.
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

// costWithPacking is the cost of one chain, its copies included.
func (g *wgmmaFilterGrad) costWithPacking(p *planner) float64 {
	_, cost := g.cheapest(p, 1, true)
	return cost + g.image.cost(p, 1) + g.shape.packGradient().cost(p, 1)
}

func (f *wgmmaFilterGrad) lower(p *planner) []Call {
	g, apart, cycles := f.choose(p, p.Chains)
	image, gradient := g.image, g.shape.packGradient()
	image.chunks, gradient.chunks = imageChunks, imageChunks
	dout, calls := p.pack(g.operands[0], gradient)
	x, more := p.pack(g.operands[1], image)
	slices, depth := 1, g.stagesInShared(p, apart)
	if apart {
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
		Shared: g.sharedBytes(depth, !apart), Arguments: arguments,
		Cycles: cycles - sliced.sumCost(p, p.Chains, apart),
	}, g.sumSlices(p, partial, slices))
}
