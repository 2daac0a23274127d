package cuda

import "github.com/pollen-ml/pollen/tensor"

// tile is an instance of the product kernels: a block's part of the result. Full is how many of a multiprocessor's multiplications and
// additions its blocks make when there are enough of them, alone when there is one; 1 is what the ordinary cores can do.
type tile struct {
	rows, columns, threads int
	full, alone            float64
}

// The tiles that the kernels are made for. The speeds are estimates: instructions that multiply among all that a warp issues, for full;
// the latency that a block's own warps leave uncovered, for alone.
var (
	tilesFloat32 = []tile{
		{128, 128, 256, 0.80, 0.65},
		{64, 128, 128, 0.75, 0.40},
		{64, 64, 256, 0.45, 0.35},
		{32, 32, 64, 0.35, 0.12},
	}
	tilesFloat64 = []tile{
		{64, 64, 256, 0.45, 0.35},
		{32, 32, 64, 0.35, 0.12},
	}
	tilesTF32 = []tile{
		{128, 128, 256, 2.4, 1.6},
		{64, 128, 128, 2.2, 0.9},
		{64, 64, 128, 1.6, 0.7},
		{32, 64, 64, 1.4, 0.35},
	}
	tilesBF16 = []tile{
		{128, 128, 256, 3.6, 2.4},
		{64, 128, 128, 3.2, 1.3},
		{64, 64, 128, 2.4, 1.0},
		{32, 64, 64, 2.0, 0.5},
	}
)

// tensorCores is the first capability whose tensor cores the kernels know.
const tensorCores = 80

// tilesOf are the tiles for a type of the program, and how their kernels' names end. FP32 stays on the ordinary cores: three products of tf32
// parts would carry its operands, but the tensor cores cut their sums off where float32 rounds.
func tilesOf(p *placement, dtype tensor.DType) (tiles []tile, ending string) {
	switch {
	case dtype == tensor.Float64:
		return tilesFloat64, dtype.Suffix()
	case p.precision == TF32 && p.capability >= tensorCores:
		return tilesTF32, string(TF32)
	case p.precision == BF16 && p.capability >= tensorCores:
		return tilesBF16, string(BF16)
	default:
		return tilesFloat32, dtype.Suffix()
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

func (t tile) blocks(g *product) int { return ceilDiv(g.rows, t.rows) * ceilDiv(g.columns, t.columns) }

// cut is how a product is shared out: its tile, and its depth in so many slices of each, which have blocks of their own when they are apart.
type cut struct {
	tile         tile
	slices, each int
	apart        bool
}

// The cost of a cut is in cycles of a multiprocessor, which makes 128 multiplications and additions in one.
const (
	costPerCycle  = 128.0
	costOfLaunch  = 3000.0 // of the kernel that adds slices
	costOfSlice   = 80.0   // to add one more: sixteen loads are on their way at once
	costOfElement = 0.006  // to write an element of workspace and read it again: 8 bytes, where the whole device moves some 1300 in a cycle
)

// The slices of a product: a power of two, or half as much more; a multiple of sliceUnit deep, so that no stage of a kernel is cut.
const (
	sliceUnit  = 32
	sliceDepth = 64 // at least
	mostSlices = 256
)

// cut finds the cheapest one. The slices are chosen as for one chain, because they determine the order of a sum, and a chain's bits may not
// depend on how many others there are; the tile and whether slices are apart do not change the bits.
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
	for n := 2; n <= mostSlices; n *= 2 {
		for _, count := range []int{n, n + n/2} {
			if count <= mostSlices && g.depth/count >= sliceDepth {
				counts = append(counts, ceilDiv(g.depth, sliceOf(g.depth, count)))
			}
		}
	}
	return counts
}

// sliceOf is the depth of each of about so many slices.
func sliceOf(depth, count int) int { return ceilDiv(ceilDiv(depth, count), sliceUnit) * sliceUnit }

func (g *product) cheapest(p *placement, tiles []tile, chains int, counts []int) cut {
	var best cut
	least := 0.0
	for _, t := range tiles {
		for _, count := range counts {
			for _, apart := range []bool{false, true} {
				if apart && count == 1 {
					continue
				}
				c := cut{tile: t, slices: count, each: sliceOf(g.depth, count), apart: apart}
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
	blocks, depth, more := c.tile.blocks(g)*chains, g.depth, 0.0
	if c.apart {
		blocks, depth = blocks*c.slices, c.each
		more = costOfLaunch + costOfSlice*float64(c.slices) + costOfElement*float64(g.rows*g.columns*c.slices*chains)
	}
	share := float64(ceilDiv(blocks, max(1, p.multiprocessors)))
	work := float64(c.tile.rows*c.tile.columns*depth) / costPerCycle
	return work*max(1/c.tile.alone, share/c.tile.full) + more
}
