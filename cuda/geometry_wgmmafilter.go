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
	x, dout    int // lines of a stage, at most
	sliceSteps int // stages of a slice
	parts      int // the slices
}

// Of the kernel.
const (
	groupStep    = 16
	filterStages = 2
	filterTaps   = 8 // of a block
	filterOf     = 512
	// filterBarriers are the bytes of the stages' barriers.
	filterBarriers = 8 * filterStages
)

// speedOfGroups is taken for that of products of 112 columns and more: a product's left operand is
// in registers, for two taps, so that shared memory has the other one to give. A multiprocessor
// holds one block, whose sixteen warps hide what each of them waits for.
var speedOfGroups = speed{12, 10}

// onGroups is nil if there is no kernel for a gradient.
func (f *packedFilter) onGroups(p *placement) *groupFilter {
	s, k := f.shape, f.shape.gradient()
	g := &groupFilter{packedFilter: f, steps: ceil(s.Q, groupStep)}
	behind := groupStep*g.steps <= k.columns && (k.top > 0 || k.left+groupStep*g.steps <= k.columns)
	if !p.groups || p.precision != BF16 || s.strideH != 1 || s.strideW != 1 || min(k.top, k.left) < 0 || !behind || speedOfGroups.full == 0 {
		return nil
	}
	reach := 0
	for tap := 0; tap < f.pixels.taps; tap += filterTaps {
		low, high := math.MaxInt, 0
		for i := tap; i < min(tap+filterTaps, f.pixels.taps); i++ {
			at := i/f.pixels.across*f.pixels.down + i%f.pixels.across*f.pixels.right
			low, high = min(low, at), max(high, at)
		}
		reach = max(reach, high-low)
	}
	// Equal parts of an image, not too large for many slices of few.
	for parts := 1; parts <= s.P; parts++ {
		g.rows = ceil(s.P, parts)
		g.stages = s.B * ceil(s.P, g.rows)
		g.x, g.dout = (g.rows-1)*f.image.columns+groupStep*g.steps+reach, (g.rows-1)*k.columns+groupStep*g.steps
		if 2*g.shared() <= p.shared {
			return g
		}
	}
	return nil
}

func (g *groupFilter) shared() int { return filterStages*lineBytes*(g.x+g.dout) + filterBarriers }

func (g *groupFilter) blocks() int {
	return ceil(g.pixels.taps, filterTaps) * ceil(g.shape.C, groupRows) * ceil(g.shape.K, groupRows)
}

// cost estimates the cycles, the sum of the slices included, as packedFilter.cost does.
func (g *groupFilter) cost(p *placement, chains int, apart bool) float64 {
	blocks, stages := g.blocks()*chains, g.stages
	if apart {
		blocks, stages = blocks*g.parts, g.sliceSteps
	}
	work := float64(groupRows*groupRows*filterTaps*groupStep*g.steps*g.rows*stages) / costPerCycle
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
		if cost := try.cost(p, 1, true); cost < least {
			least, g.sliceSteps, g.parts = cost, try.sliceSteps, try.parts
		}
	}
}

// apart says whether each slice has blocks of its own, and what that or the other way costs.
func (g *groupFilter) apart(p *placement, chains int) (bool, float64) {
	turns, together := g.cost(p, chains, false), g.cost(p, chains, true)
	return g.parts > 1 && together <= turns, min(turns, together)
}

// beats says whether this kernel is better than packedFilter's, for one chain and for many.
func (g *groupFilter) beats(p *placement) bool {
	f := *g.packedFilter
	if _, _, fits := f.cut(p); !fits {
		return true
	}
	ours, others := 1.0, 1.0
	for _, chains := range []int{1, manyChains} {
		_, one := g.apart(p, chains)
		ours, others = ours*one, others*min(f.cost(p, chains, false), f.cost(p, chains, true))
	}
	return ours < others
}

// withCopies is the cost of one chain, its copies included.
func (g *groupFilter) withCopies(p *placement) float64 {
	return g.cost(p, 1, true) + g.image.cost(p, 1) + g.shape.gradient().cost(p, 1)
}

func (g *groupFilter) calls(p *placement) []call {
	apart, cycles := g.apart(p, p.chains)
	image, gradient := g.image, g.shape.gradient()
	image.chunks, gradient.chunks = imageChunks, imageChunks
	dout, calls := p.pack(g.operands[0], gradient)
	x, more := p.pack(g.operands[1], image)
	slices, blocks, target := 1, [2]int{g.blocks(), 1}, tensor.InOut
	if apart || g.parts == 1 {
		slices, blocks[1], target = g.parts, g.parts, tensor.Out
	}
	partial := p.work(tensor.Float32, slices*g.shape.K*g.pixels.taps*g.width(p))
	arguments := []tensor.Argument{target(partial), tensor.In(dout), tensor.In(x)}
	for _, n := range []int{
		g.shape.K, g.image.planes, g.image.rows, g.image.columns, g.pixels.P, g.pixels.Q, ceil(g.shape.C, groupRows), g.pixels.taps,
		g.pixels.across, g.pixels.down, g.pixels.right, gradient.rows, gradient.columns, gradient.top*gradient.columns + gradient.left,
		ceil(g.shape.K, groupRows), g.steps, g.rows, g.sliceSteps, g.x, g.dout,
	} {
		arguments = append(arguments, tensor.Int(n))
	}
	sliced := *g.packedFilter
	sliced.slices = g.parts
	return append(append(calls, more...), call{
		symbol: "conv2d_nhwc_group_filter_bf16", blocks: blocks, threads: filterOf, shared: g.shared(), arguments: arguments,
		cycles: cycles - sliced.sumCost(p, p.chains, apart),
	}, g.sum(p, partial, slices))
}
