package plan

import (
	"fmt"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// tile is an instance of the product kernels: a block's part of the result. A multiprocessor holds
// resident blocks.
type tile struct {
	rows, columns, threads int
	depth                  int // of a stage
	shared                 int // bytes of shared memory of the stages
	resident               int
	matrices, conv         speed // of products of matrices, and of convolutions, which look for each operand's place
	sliceGroups            int   // of a block's threads, each with a slice of the depth, if above 1; only of matrices
}

// speed is a tile's in multiplications and additions: full with all resident blocks, alone with
// only one; 1 is what the ordinary cores can do, 128 in a cycle.
type speed struct{ full, single float64 }

// with is the speed of a tile of which only so many blocks fit, where full is of several.
func (s speed) limitedTo(resident int) speed {
	if resident == 1 {
		s.full = s.single
	}
	return s
}

// cycles are those of some blocks of which so many share a multiprocessor: work is a block's at the
// speed 1, bytes are what it reads.
func (s speed) cycles(p *planner, blocks, resident int, work, bytes float64) float64 {
	share := ceilDiv(blocks, max(1, p.Multiprocessors))
	return max(work/s.single, float64(share)*max(work/s.full, bytes/bytesPerCycle)) + float64(ceilDiv(share, resident))*cyclesPerWave
}

func (t tile) speeds(g *product) speed {
	if g.conv {
		return t.conv
	}
	return t.matrices
}

// The tiles that the kernels are made for. The speeds are estimates for a H200, which TestCalibrate
// measures, products and convolutions apart. full is what the loop's instructions allow if a
// multiprocessor issues four in each cycle (kernels.Loops; of convolutions the mean of the three
// directions), 0.95 of that on ordinary cores and 0.85 on tensor cores; alone is limited by the
// latency that a block's own warps leave uncovered.
var (
	tilesFloat32 = []tile{
		{128, 128, 256, 8, 32 << 10, 1, speed{0.70, 0.65}, speed{0.66, 0.60}, 0},
		{64, 64, 256, 16, 16 << 10, 2, speed{0.45, 0.35}, speed{0.41, 0.31}, 0},
		{32, 32, 64, 16, 8 << 10, 6, speed{0.35, 0.12}, speed{0.29, 0.10}, 0},
	}
	tilesFloat64 = []tile{
		{32, 32, 64, 16, 16 << 10, 6, speed{0.35, 0.12}, speed{0.29, 0.10}, 0},
	}
	tilesFP32 = []tile{
		{128, 128, 256, 16, 48 << 10, 2, speed{0.72, 0.59}, speed{0.67, 0.55}, 0},
		{64, 128, 128, 16, 36 << 10, 3, speed{0.70, 0.35}, speed{0.64, 0.32}, 0},
		{32, 32, 64, 16, 16 << 10, 8, speed{0.35, 0.12}, speed{0.29, 0.10}, 0},
	}
	tilesTF32 = []tile{
		{128, 128, 128, 16, 64 << 10, 2, speed{3.5, 2.0}, speed{2.9, 1.6}, 0},
		{64, 128, 128, 16, 48 << 10, 3, speed{2.3, 0.95}, speed{1.7, 0.70}, 0},
		{64, 64, 128, 16, 32 << 10, 3, speed{1.5, 0.57}, speed{1.1, 0.40}, 0},
		{32, 64, 64, 16, 24 << 10, 6, speed{1.3, 0.29}, speed{0.90, 0.20}, 0},
		{64, 32, 64, 16, 24 << 10, 6, speed{1.3, 0.29}, speed{0.94, 0.20}, 0},
	}
	tilesBF16 = []tile{
		{128, 128, 128, 16, 64 << 10, 2, speed{4.3, 2.5}, speed{3.2, 1.8}, 0},
		{64, 128, 128, 16, 48 << 10, 3, speed{2.6, 1.1}, speed{1.9, 0.80}, 0},
		{64, 64, 128, 16, 32 << 10, 3, speed{1.7, 0.67}, speed{1.1, 0.45}, 0},
		{32, 64, 64, 16, 24 << 10, 6, speed{1.3, 0.33}, speed{0.95, 0.23}, 0},
		{64, 32, 64, 16, 24 << 10, 6, speed{1.3, 0.33}, speed{0.99, 0.23}, 0},
	}
)

// tilesSlicedK are those whose blocks have two slices of a product at once: as fast as two
// blocks of the tile with one slice each.
var tilesSlicedK = map[Precision][]tile{
	TF32: {
		{128, 128, 256, 16, 128 << 10, 1, speed{3.5, 3.5}, speed{}, 2},
		{64, 64, 256, 16, 64 << 10, 1, speed{1.14, 1.14}, speed{}, 2},
	},
	BF16: {
		{128, 128, 256, 16, 128 << 10, 1, speed{4.3, 4.3}, speed{}, 2},
		{64, 64, 256, 16, 64 << 10, 1, speed{1.34, 1.34}, speed{}, 2},
	},
}

// tilesFor are the tiles for a product, and how their kernels' names end.
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

// size is a tile's in a kernel's name.
func (t tile) name() string {
	if t.sliceGroups > 1 {
		return fmt.Sprintf("%dx%dx%d", t.rows, t.columns, t.sliceGroups)
	}
	return fmt.Sprintf("%dx%d", t.rows, t.columns)
}

// positionBytes is the size of a place in an image (kernels/im2col.cuh).
const positionBytes = 16

// sharedBytes is a block's shared memory: the stages, and for images the places of both sides and
// of two stages' depths.
func (t tile) sharedBytes(images bool) int {
	if !images {
		return t.shared
	}
	return t.shared + positionBytes*(t.rows+t.columns+4*t.depth)
}

// tilesOf are the tiles for a type of the program, and how their kernels' names end: in the
// precision, or in the type before sm_80 and for float64. FP32 stays on the ordinary cores: three
// products of tf32 parts would hold its operands, but tensor cores truncate sums where float32
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

// cut is how a product is divided: its tile, and its depth in slices of each elements, which have
// blocks of their own if they are apart.
type split struct {
	tile               tile
	slices, sliceDepth int
	parallel           bool
}

// The cost of a cut is in cycles of a multiprocessor. It is a model, whose numbers are estimates
// for a H200 (132 multiprocessors at 1.8 GHz) until they are measured: a multiprocessor works
// through its share of the blocks as fast as its arithmetic and the cache's bandwidth allow, but no
// faster than one block can go through its depth; blocks begin and end in waves; slices apart are
// written, then added by one more kernel.
const (
	macsPerCycle        = 128.0  // multiplications and additions
	cyclesPerWave       = 2500.0 // for blocks to begin, to fill the pipeline and to write their sums
	CyclesPerLaunch     = 3000.0 // of the kernel that adds slices
	cyclesPerSlice      = 80.0   // to add one more: sixteen loads are under way at once
	cyclesPerElement    = 0.006  // to write and read a workspace element: 8 of the GPU's some 1300 bytes a cycle
	bytesPerCycle       = 24.0   // that a multiprocessor gets from the second-level cache
	sharedBytesPerCycle = 128.0  // of its shared memory
)

// The slices of a product: a power of two, or one and a half times that; a multiple of sliceUnit
// deep, so that no stage of a kernel is cut.
const (
	sliceUnit     = 32
	minSliceDepth = 64 // at least
	maxSlices     = 256
)

// cut finds the cheapest one. The slices are chosen as for one chain, because they determine the
// order of a sum, and a chain's bits must not depend on how many others there are; the tile and
// whether slices are apart do not change the bits.
func (g *product) split(p *planner, tiles []tile) split {
	best := g.cheapest(p, tiles, 1, g.sliceCounts())
	if p.Chains > 1 {
		best = g.cheapest(p, tiles, p.Chains, []int{best.slices})
	}
	return best
}

// sliceCounts are the numbers of slices that may be chosen.
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

// sliceDepthFor is the depth of each of about count slices.
func sliceDepthFor(depth, count int) int {
	return ceilDiv(ceilDiv(depth, count), sliceUnit) * sliceUnit
}

func (g *product) cheapest(p *planner, tiles []tile, chains int, counts []int) split {
	var best split
	least := 0.0
	for _, t := range tiles {
		for _, count := range counts {
			for _, apart := range []bool{false, true} {
				c := split{tile: t, slices: count, sliceDepth: sliceDepthFor(g.depth, count), parallel: apart}
				if apart && (count == 1 || t.sliceGroups > 1) || count < t.sliceGroups || t.sliceGroups > 1 && c.shared(g) > p.Shared {
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

// cost estimates the cycles of a cut.
func (g *product) cost(p *planner, c split, chains int) float64 {
	blocks, depth := c.tile.blocks(g)*chains, g.depth
	if c.parallel {
		blocks, depth = blocks*c.slices, c.sliceDepth
	} else if c.tile.sliceGroups > 1 {
		depth = c.rounds() * c.tile.sliceGroups * c.sliceDepth
	}
	work := float64(c.tile.rows*c.tile.columns*depth) / macsPerCycle
	bytes := float64(4 * (c.tile.rows + c.tile.columns) * depth)
	// Slices in turn write the sums, and read them again: in shared memory, the others', too.
	again := float64(8 * c.tile.rows * c.tile.columns * (c.rounds() - 1))
	if c.tile.sliceGroups > 1 {
		work += 2 * again / sharedBytesPerCycle * c.tile.speeds(g).full
	} else {
		bytes += again
	}
	cycles := c.tile.speeds(g).cycles(p, blocks, c.tile.resident, work, bytes)
	if g.epilogue&epilogueMask != 0 && !c.parallel {
		// A thread loads the mask for two chunks of its sums at a time.
		waits := ceilDiv(c.tile.rows*c.tile.columns, 2*4*c.tile.threads)
		cycles += loadLatency * float64(waits*ceilDiv(ceilDiv(blocks, max(1, p.Multiprocessors)), c.tile.resident))
	}
	return cycles + c.sumCost(g, chains)
}

// turns are how many times a block adds to sums.
func (c split) rounds() int {
	if c.parallel {
		return 1
	}
	return ceilDiv(c.slices, max(1, c.tile.sliceGroups))
}

// shared is a block's shared memory. Groups keep what several turns add up to there.
func (c split) shared(g *product) int {
	bytes := c.tile.sharedBytes(g.conv)
	if c.tile.sliceGroups > 1 && c.rounds() > 1 {
		bytes += 4 * c.tile.rows * c.tile.columns
	}
	return bytes
}

// sumCost estimates the cycles of the kernel that adds the slices.
func (c split) sumCost(g *product, chains int) float64 {
	if !c.parallel {
		return 0
	}
	return CyclesPerLaunch + cyclesPerSlice*float64(c.slices) + cyclesPerElement*float64(g.rows*g.columns*c.slices*chains)
}
