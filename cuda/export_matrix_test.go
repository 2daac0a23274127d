package cuda

import (
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TileSizes are the sizes of the tiles that matrix products of a type have in a precision on GPUs
// of a capability.
func TileSizes(precision Precision, capability int, dtype tensor.DType) [][2]int {
	var sizes [][2]int
	tiles, _ := tilesOf(&placement{precision: precision, capability: capability}, dtype)
	for _, t := range tiles {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// OnlyTile removes all other tiles, and packed copies, until the test ends, from the tables that
// have one of the size.
func OnlyTile(t *testing.T, rows, columns int) {
	OnlyPacked(t, TF32, -1)
	OnlyPacked(t, BF16, -1)
	noThin(t)
	sideBySide := tilesSideBySide
	t.Cleanup(func() { tilesSideBySide = sideBySide })
	tilesSideBySide = nil
	for _, table := range []*[]tile{&tilesFloat32, &tilesFloat64, &tilesFP32, &tilesTF32, &tilesBF16} {
		for _, one := range *table {
			if one.rows == rows && one.columns == columns {
				all := *table
				*table = []tile{one}
				t.Cleanup(func() { *table = all })
			}
		}
	}
}

// noThin has all products of matrices work with tiles, until the test ends.
func noThin(t *testing.T) {
	before := costOfThin
	t.Cleanup(func() { costOfThin = before })
	costOfThin = math.Inf(1)
}

var allThin = slices.Clone(tilesThin)

// OnlyThin makes products use one instance of the thin kernels, given by its number, wherever it
// applies, with the given turns, until the test ends. It returns the kernel's name.
func OnlyThin(t *testing.T, number, turns int) string {
	cost, tiles, all := costOfThin, tilesThin, thinTurns
	t.Cleanup(func() { costOfThin, tilesThin, thinTurns = cost, tiles, all })
	costOfThin, tilesThin, thinTurns = -1e12, allThin[number:number+1], []int{turns}
	return tilesThin[0].symbol("matmul")
}

// ThinTiles are the instances of thin kernels: their kinds, sizes, and how much of the longer side
// a warp or a thread has.
func ThinTiles() (kinds []string, sizes [][2]int) {
	for _, t := range allThin {
		kinds = append(kinds, string(t.kind))
		sizes = append(sizes, [2]int{t.most, t.each})
	}
	return kinds, sizes
}

// OnlySideBySide has products of matrices that are deep enough work with one of a precision's tiles
// for several slices at once, until the test ends.
func OnlySideBySide(t *testing.T, precision Precision, number int) {
	noThin(t)
	tiles, all := &tilesTF32, tilesSideBySide
	if precision == BF16 {
		tiles = &tilesBF16
	}
	plain := *tiles
	t.Cleanup(func() { *tiles, tilesSideBySide = plain, all })
	*tiles, tilesSideBySide = slices.Clone(plain), map[Precision][]tile{precision: all[precision][number : number+1]}
	for i := range plain {
		(*tiles)[i].matrices = speed{1e-6, 1e-6}
	}
}

// SideBySide are the sizes of these tiles.
func SideBySide(precision Precision) (sizes [][2]int) {
	for _, t := range tilesSideBySide[precision] {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// OnlyPacked has all convolutions in a precision work on packed copies, with one of the tiles,
// until the test ends; with none below 0.
func OnlyPacked(t *testing.T, precision Precision, number int) {
	tiles, others := &tilesPackedTF32, &tilesTF32
	if precision == BF16 {
		tiles, others = &tilesPackedBF16, &tilesBF16
	}
	before, plain, filter, window, cores, groups, filters := *tiles, *others, speedOfFilter[precision], costOfWindow, coresSpeed, tilesGrouped, speedOfGroups
	t.Cleanup(func() {
		*tiles, *others, speedOfFilter[precision], costOfWindow, coresSpeed, tilesGrouped = before, plain, filter, window, cores, groups
		speedOfGroups = filters
	})
	costOfWindow, coresSpeed, tilesGrouped, speedOfGroups = math.Inf(1), speed{}, nil, speed{}
	if number < 0 {
		*tiles, speedOfFilter[precision] = nil, speed{}
		return
	}
	*tiles, *others = before[number:number+1], slices.Clone(plain)
	for i := range plain {
		(*others)[i].images = speed{1e-6, 1e-6}
	}
}

var allGroups = slices.Clone(tilesGrouped)

// OnlyGroups has all convolutions in bf16 that can be computed by wgmma, and those alone, work with
// one of its tiles, until the test ends.
func OnlyGroups(t *testing.T, number int) {
	OnlyPacked(t, BF16, 0)
	tilesGrouped, tilesPackedBF16 = allGroups[number:number+1], slices.Clone(tilesPackedBF16)
	tilesPackedBF16[0].speed = speed{1e-5, 1e-5}
}

// OnlyGroupFilters has all convolutions in bf16 that can be computed by wgmma, and the gradients of
// their filters, work so until the test ends.
func OnlyGroupFilters(t *testing.T) {
	OnlyGroups(t, 0)
	speedOfGroups = speed{1e6, 1e6}
}

// FitsSideBySide says whether a device has the shared memory for one of these tiles.
func FitsSideBySide(d tensor.Device, precision Precision, number int) bool {
	return tilesSideBySide[precision][number].shared <= d.(*device).gpus[0].shared
}

// Capability is that of a device's first GPU, 10 major + minor.
func Capability(d tensor.Device) int { return d.(*device).gpus[0].capability() }

// Blocks are those of the kernel of that name in a step of a runner.
func Blocks(r tensor.Runner, symbol string) [2]int {
	for _, c := range r.(*runner).parts[0].all() {
		if c.symbol == symbol {
			return c.blocks
		}
	}
	return [2]int{}
}

// GroupTiles are the rows and columns of pixels that the tiles of convolutions by wgmma have.
func GroupTiles() (sizes [][2]int) {
	for _, t := range allGroups {
		sizes = append(sizes, [2]int{t.height, t.strips * stripWidth})
	}
	return sizes
}

// OnlyWindows has the gradients of filters work on windows wherever they can, by blocks of that
// many taps, until the test ends; by the tensor cores' if the ordinary ones have none.
func OnlyWindows(t *testing.T, taps int) {
	OnlyPacked(t, TF32, -1)
	OnlyPacked(t, BF16, -1)
	before, window, cores := windowTaps, costOfWindow, coresSpeed
	t.Cleanup(func() { windowTaps, costOfWindow, coresSpeed = before, window, cores })
	windowTaps, costOfWindow = []int{taps}, 8
	if taps == coresTaps {
		windowTaps, coresSpeed = nil, speed{1, 1}
	}
	for _, tiles := range []*[]tile{&tilesFloat32, &tilesFloat64, &tilesFP32, &tilesTF32, &tilesBF16} {
		plain := *tiles
		t.Cleanup(func() { *tiles = plain })
		*tiles = slices.Clone(plain)
		for i := range plain {
			(*tiles)[i].images = speed{1e-6, 1e-6}
		}
	}
}

// OnlyForwardOnWindows has convolutions of few channels work by windows on the tensor cores
// wherever they can, until the test ends.
func OnlyForwardOnWindows(t *testing.T) {
	before := coresSpeed
	t.Cleanup(func() { coresSpeed = before })
	coresSpeed = speed{1e6, 1e6}
	for _, tiles := range []*[]tile{&tilesTF32, &tilesBF16} {
		plain := *tiles
		t.Cleanup(func() { *tiles = plain })
		*tiles = slices.Clone(plain)
		for i := range plain {
			(*tiles)[i].images = speed{1e-6, 1e-6}
		}
	}
}

// PackedTiles are the sizes of the tiles of packed convolutions.
func PackedTiles(precision Precision) (sizes [][2]int) {
	for _, t := range packedTiles(&placement{precision: precision}) {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// Symbols are the kernels of a step in a runner.
func Symbols(r tensor.Runner) (all []string) {
	for _, c := range r.(*runner).parts[0].all() {
		all = append(all, c.symbol)
	}
	return all
}
