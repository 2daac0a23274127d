package cuda

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// The gradient of a convolution's filter may go by wgmma, too (kernels/nhwcgroupfilter.cuh): its
// depth are sixteen lines of the gradient's copy at a time, whose border makes them zeros behind a
// row's pixels.

// groupFilter is such a gradient: a block for each groupRows filters, block of channels and few
// taps, of each slice of the images' rows.
type groupFilter struct {
	*packedFilter
	steps      int // of groupStep lines, of a row
	rows       int // of a stage
	stages     int // of all images
	shares     int // blocks that have the taps together
	x, dout    int // lines of a stage, at most
	sliceSteps int // stages of a slice
	parts      int // the slices
}

// Of the kernel.
const (
	groupStep  = 16
	filterTaps = 9 // of a block, at most
	filterOf   = 3*128 + 128
	// tapSums are the bytes of a tap's sums of earlier slices, in shared memory.
	tapSums = 4 * groupRows * groupRows
	// filterBarriers are the bytes of a stage's two barriers.
	filterBarriers = 8 * 2
	// A block has as many stages as shared memory has room for, up to maxStages. Stages are cut
	// small enough for minStages of them to fit next to the sums of usualTaps taps.
	minStages, maxStages = 3, 8
	usualTaps            = 7
)

// speedOfGroups is taken for that of products of 112 columns and more: a product's left operand is
// in registers, for a few taps, so that shared memory has the other one to give. A multiprocessor
// holds one block, whose warps never wait for all others.
var speedOfGroups = speed{12, 10}

// onGroups is nil if there is no kernel for a gradient.
func (f *packedFilter) onGroups(p *placement) *groupFilter {
	s, k := f.shape, f.shape.gradient()
	g := groupFilter{packedFilter: f, steps: ceil(s.Q, groupStep)}
	behind := groupStep*g.steps <= k.columns && (k.top > 0 || k.left+groupStep*g.steps <= k.columns)
	if !p.groups || p.precision != BF16 || s.strideH != 1 || s.strideW != 1 || min(k.top, k.left) < 0 || !behind || speedOfGroups.full == 0 {
		return nil
	}
	// Equal parts of an image, not too large for some stages and sums.
	for parts := 1; parts <= s.P; parts++ {
		g.rows = ceil(s.P, parts)
		g.stages = s.B * ceil(s.P, g.rows)
		if g = g.shared(ceil(f.pixels.taps, usualTaps)); g.bytes(minStages, true) <= p.shared {
			return &g
		}
	}
	return nil
}

// shared returns g with its taps divided among shares blocks, whose numbers of taps differ by at
// most one.
func (g groupFilter) shared(shares int) groupFilter {
	f, reach := g.packedFilter, 0
	for share, tap := 0, 0; share < shares; share++ {
		low, high := math.MaxInt, 0
		for end := tap + (f.pixels.taps+shares-1-share)/shares; tap < end; tap++ {
			at := tap/f.pixels.across*f.pixels.down + tap%f.pixels.across*f.pixels.right
			low, high = min(low, at), max(high, at)
		}
		reach = max(reach, high-low)
	}
	g.shares = shares
	g.dout = (g.rows-1)*f.shape.gradient().columns + groupStep*g.steps
	g.x = (g.rows-1)*f.image.columns + groupStep*g.steps + reach
	return g
}

// bytes are a block's of shared memory, with stages and perhaps the sums of earlier slices.
func (g groupFilter) bytes(stages int, sums bool) int {
	bytes := stages * (lineBytes*(g.x+g.dout) + filterBarriers)
	if sums {
		bytes += tapSums * ceil(g.pixels.taps, g.shares)
	}
	return bytes
}

// depth is the stages in shared memory.
func (g groupFilter) depth(p *placement, apart bool) int {
	depth := maxStages
	for depth > 0 && g.bytes(depth, !apart) > p.shared {
		depth--
	}
	return depth
}

func (g groupFilter) blocks() int {
	return g.shares * ceil(g.shape.C, groupRows) * ceil(g.shape.K, groupRows)
}

// cheapest shares the taps as is best, which makes no difference to the sums. It estimates the
// cycles, the sum of the slices included, as packedFilter.cost does.
func (g groupFilter) cheapest(p *placement, chains int, apart bool) (best groupFilter, least float64) {
	taps := g.pixels.taps
	best, least = g, math.Inf(1)
	for shares := ceil(taps, filterTaps); shares <= min(taps, ceil(taps, usualTaps)+1); shares++ {
		try := g.shared(shares)
		if try.depth(p, apart) < minStages {
			continue
		}
		if cost := try.cost(p, chains, apart); cost < least {
			best, least = try, cost
		}
	}
	return best, least
}

func (g groupFilter) cost(p *placement, chains int, apart bool) float64 {
	blocks, stages := g.blocks()*chains, g.stages
	if apart {
		blocks, stages = blocks*g.parts, g.sliceSteps
	}
	taps := float64(g.pixels.taps) / float64(g.shares)
	work := taps * float64(groupRows*groupRows*groupStep*g.steps*g.rows*stages) / costPerCycle
	bytes := float64(lineBytes * stages * (g.x + g.dout))
	sliced := *g.packedFilter
	sliced.slices = g.parts
	return speedOfGroups.cycles(p, blocks, 1, work, bytes) + sliced.sumCost(p, chains, apart)
}

// cut finds the slices as for one chain.
func (g *groupFilter) cut(p *placement) {
	least := math.Inf(1)
	for _, count := range g.sliceCounts() {
		if count > g.stages {
			break
		}
		try := *g
		try.sliceSteps = ceil(g.stages, count)
		try.parts = ceil(g.stages, try.sliceSteps)
		if _, cost := try.cheapest(p, 1, true); cost < least {
			least, g.sliceSteps, g.parts = cost, try.sliceSteps, try.parts
		}
	}
}

// planned is how some chains' gradients are computed: whether each slice has blocks of its own, and
// the cost.
func (g groupFilter) planned(p *placement, chains int) (best groupFilter, apart bool, cycles float64) {
	turns, cycles := g.cheapest(p, chains, false)
	together, other := g.cheapest(p, chains, true)
	if g.parts > 1 && other <= cycles {
		return together, true, other
	}
	return turns, false, cycles
}

// beats says whether this kernel is better than packedFilter's, for one chain and for many.
func (g *groupFilter) beats(p *placement) bool {
	f := *g.packedFilter
	if _, _, fits := f.cut(p); !fits {
		return true
	}
	ours, others := 1.0, 1.0
	for _, chains := range []int{1, manyChains} {
		_, _, one := g.planned(p, chains)
		ours, others = ours*one, others*min(f.cost(p, chains, false), f.cost(p, chains, true))
	}
	return ours < others
}

// withCopies is the cost of one chain, its copies included.
func (g *groupFilter) withCopies(p *placement) float64 {
	_, cost := g.cheapest(p, 1, true)
	return cost + g.image.cost(p, 1) + g.shape.gradient().cost(p, 1)
}

func (f *groupFilter) calls(p *placement) []call {
	g, apart, cycles := f.planned(p, p.chains)
	image, gradient := g.image, g.shape.gradient()
	image.chunks, gradient.chunks = imageChunks, imageChunks
	dout, calls := p.pack(g.operands[0], gradient)
	x, more := p.pack(g.operands[1], image)
	slices, depth := 1, g.depth(p, apart)
	if apart {
		slices, depth = g.parts, min(depth, max(g.sliceSteps, 2))
	}
	partial := p.work(tensor.Float32, slices*g.shape.K*g.pixels.taps*g.width(p))
	arguments := []tensor.Argument{tensor.Out(partial), tensor.In(dout), tensor.In(x)}
	for _, n := range []int{
		g.shape.K, g.image.planes, g.image.rows, g.image.columns, g.pixels.P, g.pixels.Q, ceil(g.shape.C, groupRows), g.pixels.taps,
		g.pixels.across, g.pixels.down, g.pixels.right, gradient.rows, gradient.columns, gradient.top*gradient.columns + gradient.left,
		ceil(g.shape.K, groupRows), g.steps, g.rows, g.sliceSteps, g.x, g.dout, depth, g.shares,
	} {
		arguments = append(arguments, tensor.Int(n))
	}
	sliced := *g.packedFilter
	sliced.slices = g.parts
	return append(append(calls, more...), call{
		symbol: "conv2d_nhwc_group_filter_bf16", blocks: [2]int{g.blocks(), slices}, threads: filterOf, shared: g.bytes(depth, !apart), arguments: arguments,
		cycles: cycles - sliced.sumCost(p, p.chains, apart),
	}, g.sum(p, partial, slices))
}
