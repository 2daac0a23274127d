package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// tilesRounded are tiles for products of matrices in bf16 that bandwidth limits, as with many
// chains (kernels/rounded.cuh). They keep three or four stages of unrounded operands in flight, 32
// depths each, round them once in shared memory, and add the sums of slices in registers. Their
// sums have the order of the other tiles, hence the same bits. The smallest one has a whole slice
// of a single chain's product in flight.
//
// The speeds for full multiprocessors were measured on an H200 with the layers of
// TestMeasureLayers, when the kernels had a fifth more instructions than now.
var tilesRounded = []tile{
	{128, 128, 512, 32, 128 << 10, 1, speed{2.4, 2.4}, speed{}, 0, true},
	{128, 64, 256, 32, 96 << 10, 2, speed{2.1, 1.6}, speed{}, 0, true},
	{64, 128, 256, 32, 96 << 10, 2, speed{2.1, 1.6}, speed{}, 0, true},
	{64, 64, 128, 32, 80 << 10, 2, speed{1.7, 1.3}, speed{}, 0, true},
}

// tilesOfImages are the tiles for products that read images from the data set (gathered.go), with
// four stages.
var tilesOfImages = []tile{
	{128, 128, 512, 32, 112 << 10, 1, speed{2.2, 2.2}, speed{}, 0, true},
	{128, 64, 256, 32, 96 << 10, 2, speed{1.9, 1.5}, speed{}, 0, true},
	{64, 128, 256, 32, 96 << 10, 2, speed{1.9, 1.5}, speed{}, 0, true},
}

// minRoundedChains is the smallest number of chains for which rounded tiles of more than
// smallRounded elements are used. A single chain of an ordinary network fills the GPU better with
// smaller tiles.
const (
	minRoundedChains = 2
	smallRounded     = 64 * 64
)

// onlyRounded makes all products use these tiles that can; force.go changes it.
var onlyRounded bool

// withRounded returns the tiles to choose from once the number of slices is known. Rounded tiles
// replace other tiles of the same size, which took an H100 1.6 to 2 times as long as moving their
// bytes takes.
func (g *product) withRounded(p *planner, tiles []tile) []tile {
	rounded := g.roundedTiles(p)
	switch {
	case onlyRounded && len(rounded) > 0:
		return rounded
	case p.Chains < minRoundedChains:
		rounded = slices.DeleteFunc(rounded, func(t tile) bool { return t.rows*t.columns > smallRounded })
	}
	others := slices.DeleteFunc(slices.Clone(tiles), func(t tile) bool {
		return slices.ContainsFunc(rounded, func(r tile) bool { return r.rows == t.rows && r.columns == t.columns })
	})
	return slices.Concat(others, rounded)
}

// canRound reports whether the target has these kernels.
func (p *planner) canRound() bool {
	return !p.NoRounding && p.Precision == BF16 && p.Capability >= SM80
}

// roundedTiles returns the rounded tiles that can compute the product. An operand is copied 16
// bytes at a time, along its depth or along its other side.
func (g *product) roundedTiles(p *planner) (tiles []tile) {
	if !p.canRound() || !g.forward || g.conv || g.out.Buffer.DType != tensor.Float32 {
		return nil
	}
	const together = 4 // numbers of 16 bytes
	acrossA, acrossB := intValue(g.sizes[3]) != 0, intValue(g.sizes[4]) == 0
	if acrossA && g.rows%together != 0 || acrossB && g.columns%together != 0 || !(acrossA && acrossB) && g.depth%together != 0 {
		return nil
	}
	for _, t := range tilesRounded {
		if t.shared <= p.Shared {
			tiles = append(tiles, t)
		}
	}
	return tiles
}
