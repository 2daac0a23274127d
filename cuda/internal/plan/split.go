package plan

import (
	"fmt"

	"github.com/pollen-ml/pollen/tensor"
)

// split is how a product is divided among blocks: into tiles of the result and, if these are too
// few to fill the GPU, into slices of the depth (split-K in CUTLASS's terms).
//
// For example, the gradient of a first layer's filter is a product of 64 x 78400 x 25. It has a
// single 64 x 64 tile, so that one multiprocessor of 132 would do all the work. With the depth in
// 256 slices, 256 blocks share it, and their sums are added up.
type split struct {
	tile       tile
	slices     int
	sliceDepth int
	// parallel gives each slice separate blocks, and their sums are added by one more call. If it
	// is false, a block computes the slices in turn (or a few at once, with tile.sliceGroups) and
	// adds to its sums in memory after each. Both give the same bits.
	parallel bool
}

// The number of slices is about a power of two, or 1.5 times a power of two. Their depth is a
// multiple of sliceUnit, so that each has whole stages.
const (
	sliceUnit     = 32
	minSliceDepth = 64 // at least
	maxSlices     = 256
)

// split returns the cheapest division. The number of slices is chosen as for one chain: it
// determines the order in which the depth is summed, and a chain's bits must not depend on how many
// other chains there are. The tile and parallel do not change the bits, so they are chosen for the
// actual number.
func (g *product) split(p *planner, tiles []tile) split {
	one := g.cheapest(p, tiles, 1, g.sliceCounts())
	return g.cheapest(p, g.withRounded(p, tiles), p.Chains, []int{one.slices})
}

// sliceCounts returns the numbers of slices to choose from.
func (g *product) sliceCounts() []int {
	counts := []int{1}
	for n := 2; n <= maxSlices; n *= 2 {
		for _, count := range []int{n, n + n/2} {
			if count <= maxSlices && g.depth/count >= minSliceDepth {
				counts = append(counts, ceilDiv(g.depth, sliceDepthFor(g.depth, count)))
			}
		}
	}
	return counts
}

// sliceDepthFor returns the depth of each of about count slices.
func sliceDepthFor(depth, count int) int {
	return ceilDiv(ceilDiv(depth, count), sliceUnit) * sliceUnit
}

// cheapest returns the division with the lowest cost for a number of chains, among some tiles and
// numbers of slices.
func (g *product) cheapest(p *planner, tiles []tile, chains int, counts []int) split {
	var best split
	least := 0.0
	for _, t := range tiles {
		for _, count := range counts {
			for _, parallel := range []bool{false, true} {
				c := split{tile: t, slices: count, sliceDepth: sliceDepthFor(g.depth, count), parallel: parallel}
				if parallel && (count == 1 || t.sliceGroups > 1) || count < t.sliceGroups || t.sliceGroups > 1 && c.shared(g) > p.Shared {
					continue
				}
				if cost := g.cost(p, c, chains); least == 0 || cost < least {
					best, least = c, cost
				}
			}
		}
	}
	return best
}

// cost estimates the cycles of a division, including the sum of parallel slices.
func (g *product) cost(p *planner, c split, chains int) float64 {
	blocks, depth := c.tile.blocks(g)*chains, g.depth
	if c.parallel {
		blocks, depth = blocks*c.slices, c.sliceDepth
	} else if c.tile.sliceGroups > 1 {
		depth = c.rounds() * c.tile.sliceGroups * c.sliceDepth
	}
	work := float64(c.tile.rows*c.tile.columns*depth) / macsPerCycle
	perDepth := 4 * (c.tile.rows + c.tile.columns)
	switch g.images {
	case 1:
		perDepth -= 3 * c.tile.rows
	case 2:
		perDepth -= 3 * c.tile.columns
	}
	bytes := float64(perDepth * depth)
	// Every slice but the first reads the sums of those before it, and writes them back. Groups of
	// threads also exchange their sums, through shared memory.
	again := float64(8 * c.tile.rows * c.tile.columns * (c.rounds() - 1))
	switch {
	case c.tile.rounded: // which adds slices in registers
	case c.tile.sliceGroups > 1:
		work += 2 * again / sharedBytesPerCycle * c.tile.speeds(g).full
	default:
		bytes += again
	}
	cycles := c.tile.speeds(g).cycles(p, blocks, c.tile.resident, work, bytes)
	if g.epilogue&epilogueMask != 0 && !c.parallel {
		// A thread waits for the mask of eight of its sums at a time.
		waits := ceilDiv(c.tile.rows*c.tile.columns, 2*4*c.tile.threads)
		cycles += loadLatency * float64(waits*ceilDiv(ceilDiv(blocks, max(1, p.Multiprocessors)), c.tile.resident))
	}
	return cycles + c.sumCost(g, chains)
}

// rounds returns how many times a block adds to its sums.
func (c split) rounds() int {
	if c.parallel {
		return 1
	}
	return ceilDiv(c.slices, max(1, c.tile.sliceGroups))
}

// shared is a block's shared memory. A block with groups keeps the sums of several rounds there.
func (c split) shared(g *product) int {
	bytes := c.tile.sharedBytes(g.looksUp())
	if c.tile.sliceGroups > 1 && c.rounds() > 1 {
		bytes += 4 * c.tile.rows * c.tile.columns
	}
	return bytes
}

// sumCost estimates the cycles of the call that adds parallel slices.
func (c split) sumCost(g *product, chains int) float64 {
	if !c.parallel {
		return 0
	}
	return CyclesPerLaunch + cyclesPerSlice*float64(c.slices) + cyclesPerElement*float64(g.rows*g.columns*c.slices*chains)
}

// lowerTiles returns the calls of the product by tiles. A parallel split writes the sums of its
// slices to workspace, and the call that adds them has the epilogue. The slices keep only the bit
// for pooling, which makes a convolution order its pixels by windows.
func (g *product) lowerTiles(p *planner) []Call {
	g = g.tiled(p)
	dtype := g.out.Buffer.DType
	tiles, ending := g.tilesFor(p)
	c := g.split(p, tiles)
	operand, images := g.gatheredOperand(p)
	if g.images = operand; operand > 0 {
		c = g.cheapest(p, tilesOfImages, p.Chains, []int{c.slices})
	}
	target, epilogue := g.out, g.epilogue|g.mask
	switch {
	case c.parallel:
		target, epilogue = tensor.Out(p.workBuffer(dtype, c.slices*g.rows*g.columns)), epilogue&epiloguePool
	case g.pool != nil && c.slices == 1:
		target = g.operands[0] // not used: only the maxima are written
	}
	blocks := [2]int{c.tile.blocks(g), 1}
	if c.parallel {
		blocks[1] = c.slices
	}
	arguments := append([]tensor.Argument{target}, g.operands...)
	switch {
	case g.images > 0:
		arguments = append(arguments[:1:1], g.fromDataSet(images, epilogue)...)
	case g.forward || g.pixels && !g.filterGrad:
		arguments = append(arguments, g.biasOr(g.operands[0]))
		if g.looksUp() {
			pooled, which := g.operands[0], g.operands[0]
			if g.pool != nil && !c.parallel {
				pooled, which = tensor.Out(g.pool.pooled), g.argmaxOr(which)
			}
			arguments = append(arguments, pooled, which)
		}
		arguments = append(append(arguments, g.sizes...), tensor.Int(epilogue))
	default:
		arguments = append(arguments, g.sizes...)
	}
	calls := []Call{{
		Symbol: fmt.Sprintf("%s_%s_%s", g.stem, c.tile.name(), ending),
		Blocks: blocks, Threads: c.tile.threads, Shared: c.shared(g),
		Arguments: append(arguments, tensor.Int(c.slices), tensor.Int(c.sliceDepth)), Cycles: g.cost(p, c, p.Chains) - c.sumCost(g, p.Chains),
	}}
	if images != nil {
		images.complete(&calls[0])
	}
	if c.parallel {
		calls = append(calls, g.sumSlices(p, target.Buffer, c.slices))
	}
	return calls
}
