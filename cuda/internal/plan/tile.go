package plan

import (
	"fmt"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// tile is an instance of the product kernels: the part of the result that a block computes. A block
// goes through the depth in stages, which it copies to shared memory ahead of its arithmetic.
type tile struct {
	rows, columns, threads int
	depth                  int   // of a stage
	shared                 int   // bytes of shared memory of the stages
	resident               int   // blocks that a multiprocessor holds at once
	matrices               speed // of products of matrices
	conv                   speed // of convolutions, which look up the address of each operand
	sliceGroups            int   // if above 1, groups of the block's threads that each have a slice of the depth; only of matrices
	rounded                bool  // operands are rounded once (rounded.go); only of matrices
}

func (t tile) speeds(g *product) speed {
	if g.looksUp() {
		return t.conv
	}
	return t.matrices
}

// The tiles for which there are kernels. Large tiles read each operand fewer times, and small ones
// give more blocks: a 128 x 128 tile reads 1/64 of a number for each multiplication, a 32 x 32 tile
// 1/16. The kernels' names end in the table's name: float32 and float64 are for GPUs before SM80
// and for float64.
//
// The speeds are estimates for an H200 until TestCalibrate, which measures products and
// convolutions separately, has run. full is 0.95 (ordinary cores) or 0.85 (tensor cores) of what
// the loop's instructions allow if a multiprocessor issues four per cycle (kernels.Loops; for
// convolutions the mean of the three directions). single is limited by the latencies that a block's
// warps cannot hide from each other.
var (
	tilesFloat32 = []tile{
		{128, 128, 256, 8, 32 << 10, 1, speed{0.70, 0.65}, speed{0.66, 0.60}, 0, false},
		{64, 64, 256, 16, 16 << 10, 2, speed{0.45, 0.35}, speed{0.41, 0.31}, 0, false},
		{32, 32, 64, 16, 8 << 10, 6, speed{0.35, 0.12}, speed{0.29, 0.10}, 0, false},
	}
	tilesFloat64 = []tile{
		{32, 32, 64, 16, 16 << 10, 6, speed{0.35, 0.12}, speed{0.29, 0.10}, 0, false},
	}
	tilesFP32 = []tile{
		{128, 128, 256, 16, 48 << 10, 2, speed{0.72, 0.59}, speed{0.67, 0.55}, 0, false},
		{64, 128, 128, 16, 36 << 10, 3, speed{0.70, 0.35}, speed{0.64, 0.32}, 0, false},
		{32, 32, 64, 16, 16 << 10, 8, speed{0.35, 0.12}, speed{0.29, 0.10}, 0, false},
	}
	tilesTF32 = []tile{
		{128, 128, 128, 16, 64 << 10, 2, speed{3.5, 2.0}, speed{2.9, 1.6}, 0, false},
		{64, 128, 128, 16, 48 << 10, 3, speed{2.3, 0.95}, speed{1.7, 0.70}, 0, false},
		{64, 64, 128, 16, 32 << 10, 3, speed{1.5, 0.57}, speed{1.1, 0.40}, 0, false},
		{32, 64, 64, 16, 24 << 10, 6, speed{1.3, 0.29}, speed{0.90, 0.20}, 0, false},
		{64, 32, 64, 16, 24 << 10, 6, speed{1.3, 0.29}, speed{0.94, 0.20}, 0, false},
	}
	tilesBF16 = []tile{
		{128, 128, 128, 16, 64 << 10, 2, speed{4.3, 2.5}, speed{3.2, 1.8}, 0, false},
		{64, 128, 128, 16, 48 << 10, 3, speed{2.6, 1.1}, speed{1.9, 0.80}, 0, false},
		{64, 64, 128, 16, 32 << 10, 3, speed{1.7, 0.67}, speed{1.1, 0.45}, 0, false},
		{32, 64, 64, 16, 24 << 10, 6, speed{1.3, 0.33}, speed{0.95, 0.23}, 0, false},
		{64, 32, 64, 16, 24 << 10, 6, speed{1.3, 0.33}, speed{0.99, 0.23}, 0, false},
	}
)

// tilesSlicedK are tiles whose blocks compute two slices of a product at once, each by half of
// their threads (CUTLASS calls this sliced-K). Such a block is as fast as two blocks of the tile
// with one slice each, but needs no second call to add the slices.
var tilesSlicedK = map[Precision][]tile{
	TF32: {
		{128, 128, 256, 16, 128 << 10, 1, speed{3.5, 3.5}, speed{}, 2, false},
		{64, 64, 256, 16, 64 << 10, 1, speed{1.14, 1.14}, speed{}, 2, false},
	},
	BF16: {
		{128, 128, 256, 16, 128 << 10, 1, speed{4.3, 4.3}, speed{}, 2, false},
		{64, 64, 256, 16, 64 << 10, 1, speed{1.34, 1.34}, speed{}, 2, false},
	},
}

// tilesFor returns the tiles for a product, and how their kernels' names end.
func (g *product) tilesFor(p *planner) (tiles []tile, ending string) {
	tiles, ending = tilesOf(p, g.out.Buffer.DType)
	if g.conv || ending != string(p.Precision) {
		return tiles, ending
	}
	tiles = slices.Clone(tiles)
	for _, t := range tilesSlicedK[p.Precision] {
		if t.shared <= p.Shared {
			tiles = append(tiles, t)
		}
	}
	return tiles, ending
}

// name returns the tile's size as it is in a kernel's name.
func (t tile) name() string {
	switch {
	case t.sliceGroups > 1:
		return fmt.Sprintf("%dx%dx%d", t.rows, t.columns, t.sliceGroups)
	case t.rounded:
		return fmt.Sprintf("rounded_%dx%d", t.rows, t.columns)
	}
	return fmt.Sprintf("%dx%d", t.rows, t.columns)
}

// positionBytes is the size of an operand's position in an image (kernels/im2col.cuh), which a
// block keeps in shared memory.
const positionBytes = 16

// sharedBytes is a block's shared memory: the stages and, for a convolution, the positions of its
// rows and columns and of two stages' depths.
func (t tile) sharedBytes(images bool) int {
	if !images {
		return t.shared
	}
	return t.shared + positionBytes*(t.rows+t.columns+4*t.depth)
}

// tilesOf returns the tiles for a program's type, and how their kernels' names end: in the
// precision, or in the type for float64 and before SM80. FP32 stays on the ordinary cores. Three
// products of tf32 parts would represent its operands, but tensor cores truncate sums where float32
// rounds.
func tilesOf(p *planner, dtype tensor.DType) (tiles []tile, ending string) {
	switch {
	case dtype == tensor.Float64:
		return tilesFloat64, dtype.Suffix()
	case p.Capability < SM80:
		return tilesFloat32, dtype.Suffix()
	case p.Precision == TF32:
		return tilesTF32, string(TF32)
	case p.Precision == BF16:
		return tilesBF16, string(BF16)
	default:
		return tilesFP32, string(FP32)
	}
}

func (t tile) blocks(g *product) int { return ceilDiv(g.rows, t.rows) * ceilDiv(g.columns, t.columns) }

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
	// parallel gives each slice blocks of its own, and their sums are added by one more call. If it
	// is false, a block computes the slices in turn (or a few at once, with tile.sliceGroups) and
	// adds to its sums in memory after each. Both give the same bits.
	parallel bool
}

// The number of slices is a power of two, or one and a half times that. Their depth is a multiple
// of sliceUnit, so that each has whole stages.
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

// cost estimates the cycles of a division, the sum of parallel slices included.
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

// rounds is how many times a block adds to its sums.
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
// for pooling, by which a convolution orders its pixels by windows.
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
