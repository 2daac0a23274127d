package cuda

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
	matrices, images       speed // of products of matrices, and of convolutions, which look for each operand's place
	groups                 int   // of a block's threads, each with a slice of the depth, if above 1; only of matrices
}

// speed is a tile's in multiplications and additions: full with all resident blocks, alone with
// only one; 1 is what the ordinary cores can do, 128 in a cycle.
type speed struct{ full, alone float64 }

// with is the speed of a tile of which only so many blocks fit, where full is of several.
func (s speed) with(resident int) speed {
	if resident == 1 {
		s.full = s.alone
	}
	return s
}

// cycles are those of some blocks of which so many share a multiprocessor: work is a block's at the
// speed 1, bytes are what it reads.
func (s speed) cycles(p *placement, blocks, resident int, work, bytes float64) float64 {
	share := ceil(blocks, max(1, p.multiprocessors))
	return max(work/s.alone, float64(share)*max(work/s.full, bytes/bytesPerCycle)) + float64(ceil(share, resident))*costOfWave
}

func (t tile) speeds(g *product) speed {
	if g.images {
		return t.images
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

// tilesSideBySide are those whose blocks have two slices of a product at once: as fast as two
// blocks of the tile with one slice each.
var tilesSideBySide = map[Precision][]tile{
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
func (g *product) tilesFor(p *placement) (tiles []tile, ending string) {
	tiles, ending = tilesOf(p, g.out.Buffer.DType)
	if g.images || ending != string(p.precision) {
		return tiles, ending
	}
	tiles = slices.Clone(tiles)
	for _, t := range tilesSideBySide[p.precision] {
		if t.shared <= p.shared {
			tiles = append(tiles, t)
		}
	}
	return tiles, ending
}

// size is a tile's in a kernel's name.
func (t tile) size() string {
	if t.groups > 1 {
		return fmt.Sprintf("%dx%dx%d", t.rows, t.columns, t.groups)
	}
	return fmt.Sprintf("%dx%d", t.rows, t.columns)
}

// placeBytes is the size of a place in an image (kernels/im2col.cuh).
const placeBytes = 16

// sharedBytes is a block's shared memory: the stages, and for images the places of both sides and
// of two stages' depths.
func (t tile) sharedBytes(images bool) int {
	if !images {
		return t.shared
	}
	return t.shared + placeBytes*(t.rows+t.columns+4*t.depth)
}

// asynchronous is the first capability whose tensor cores, and copies from global to shared memory,
// the kernels use.
const asynchronous = 80

// tilesOf are the tiles for a type of the program, and how their kernels' names end: in the
// precision, or in the type before sm_80 and for float64. FP32 stays on the ordinary cores: three
// products of tf32 parts would hold its operands, but tensor cores truncate sums where float32
// rounds.
func tilesOf(p *placement, dtype tensor.DType) (tiles []tile, ending string) {
	switch {
	case dtype == tensor.Float64:
		return tilesFloat64, dtype.Suffix()
	case p.capability < asynchronous:
		return tilesFloat32, dtype.Suffix()
	case p.precision == TF32:
		return tilesTF32, string(TF32)
	case p.precision == BF16:
		return tilesBF16, string(BF16)
	default:
		return tilesFP32, string(FP32)
	}
}

func (t tile) blocks(g *product) int { return ceil(g.rows, t.rows) * ceil(g.columns, t.columns) }

// cut is how a product is divided: its tile, and its depth in slices of each elements, which have
// blocks of their own if they are apart.
type cut struct {
	tile         tile
	slices, each int
	apart        bool
}

// The cost of a cut is in cycles of a multiprocessor. It is a model, whose numbers are estimates
// for a H200 (132 multiprocessors at 1.8 GHz) until they are measured: a multiprocessor works
// through its share of the blocks as fast as its arithmetic and the cache's bandwidth allow, but no
// faster than one block can go through its depth; blocks begin and end in waves; slices apart are
// written, then added by one more kernel.
const (
	costPerCycle   = 128.0  // multiplications and additions
	costOfWave     = 2500.0 // for blocks to begin, to fill the pipeline and to write their sums
	costOfLaunch   = 3000.0 // of the kernel that adds slices
	costOfSlice    = 80.0   // to add one more: sixteen loads are under way at once
	costOfElement  = 0.006  // to write and read a workspace element: 8 of the GPU's some 1300 bytes a cycle
	bytesPerCycle  = 24.0   // that a multiprocessor gets from the second-level cache
	sharedPerCycle = 128.0  // of its shared memory
)

// The slices of a product: a power of two, or one and a half times that; a multiple of sliceUnit
// deep, so that no stage of a kernel is cut.
const (
	sliceUnit  = 32
	sliceDepth = 64 // at least
	maxSlices  = 256
)

// cut finds the cheapest one. The slices are chosen as for one chain, because they determine the
// order of a sum, and a chain's bits must not depend on how many others there are; the tile and
// whether slices are apart do not change the bits.
func (g *product) cut(p *placement, tiles []tile) cut {
	best := g.cheapest(p, tiles, 1, g.sliceCounts())
	if p.chains > 1 {
		best = g.cheapest(p, tiles, p.chains, []int{best.slices})
	}
	return best
}

// sliceCounts are the numbers of slices that may be chosen.
func (g *product) sliceCounts() []int {
	counts := []int{1}
	for n := 2; n <= maxSlices; n *= 2 {
		for _, count := range []int{n, n + n/2} {
			if count <= maxSlices && g.depth/count >= sliceDepth {
				counts = append(counts, ceil(g.depth, sliceOf(g.depth, count)))
			}
		}
	}
	return counts
}

// sliceOf is the depth of each of about count slices.
func sliceOf(depth, count int) int { return ceil(ceil(depth, count), sliceUnit) * sliceUnit }

func (g *product) cheapest(p *placement, tiles []tile, chains int, counts []int) cut {
	var best cut
	least := 0.0
	for _, t := range tiles {
		for _, count := range counts {
			for _, apart := range []bool{false, true} {
				c := cut{tile: t, slices: count, each: sliceOf(g.depth, count), apart: apart}
				if apart && (count == 1 || t.groups > 1) || count < t.groups || t.groups > 1 && c.shared(g) > p.shared {
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
func (g *product) cost(p *placement, c cut, chains int) float64 {
	blocks, depth := c.tile.blocks(g)*chains, g.depth
	if c.apart {
		blocks, depth = blocks*c.slices, c.each
	} else if c.tile.groups > 1 {
		depth = c.turns() * c.tile.groups * c.each
	}
	work := float64(c.tile.rows*c.tile.columns*depth) / costPerCycle
	bytes := float64(4 * (c.tile.rows + c.tile.columns) * depth)
	// Slices in turn write the sums, and read them again: in shared memory, the others', too.
	again := float64(8 * c.tile.rows * c.tile.columns * (c.turns() - 1))
	if c.tile.groups > 1 {
		work += 2 * again / sharedPerCycle * c.tile.speeds(g).full
	} else {
		bytes += again
	}
	cycles := c.tile.speeds(g).cycles(p, blocks, c.tile.resident, work, bytes)
	if g.epilogue&epilogueMask != 0 && !c.apart {
		// A thread loads the mask for two chunks of its sums at a time.
		waits := ceil(c.tile.rows*c.tile.columns, 2*4*c.tile.threads)
		cycles += costOfLoads * float64(waits*ceil(ceil(blocks, max(1, p.multiprocessors)), c.tile.resident))
	}
	return cycles + c.sumCost(g, chains)
}

// turns are how many times a block adds to sums.
func (c cut) turns() int {
	if c.apart {
		return 1
	}
	return ceil(c.slices, max(1, c.tile.groups))
}

// shared is a block's shared memory. Groups keep what several turns add up to there.
func (c cut) shared(g *product) int {
	bytes := c.tile.sharedBytes(g.images)
	if c.tile.groups > 1 && c.turns() > 1 {
		bytes += 4 * c.tile.rows * c.tile.columns
	}
	return bytes
}

// sumCost estimates the cycles of the kernel that adds the slices.
func (c cut) sumCost(g *product, chains int) float64 {
	if !c.apart {
		return 0
	}
	return costOfLaunch + costOfSlice*float64(c.slices) + costOfElement*float64(g.rows*g.columns*c.slices*chains)
}
