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
// 1/16. The kernels' names end in the precision. tilesFloat32, for GPUs before SM80, and
// tilesFloat64 have kernels whose names end in f32 and f64.
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
