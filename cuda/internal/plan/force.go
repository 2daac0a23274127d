package plan

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// The functions of this file are for tests and measurements of package cuda, which use a GPU: they
// force plans to use one kernel, which the costs would not choose, until the test ends. None may
// run while a plan is made.

// cleaner is a *testing.T.
type cleaner interface{ Cleanup(func()) }

// TileSizes are the sizes of the tiles that matrix products of a type have in a precision on GPUs
// of a capability.
func TileSizes(precision Precision, capability int, dtype tensor.DType) [][2]int {
	var sizes [][2]int
	tiles, _ := tilesOf(&planner{Target: Target{Precision: precision, Capability: capability}}, dtype)
	for _, t := range tiles {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// OnlyTile removes all other tiles, and packed copies, until the test ends, from the tables that
// have one of the size.
func OnlyTile(t cleaner, rows, columns int) {
	OnlyPacked(t, TF32, -1)
	OnlyPacked(t, BF16, -1)
	noThin(t)
	sideBySide := tilesSlicedK
	t.Cleanup(func() { tilesSlicedK = sideBySide })
	tilesSlicedK = nil
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
func noThin(t cleaner) {
	before := cyclesPerThinBlock
	t.Cleanup(func() { cyclesPerThinBlock = before })
	cyclesPerThinBlock = math.Inf(1)
}

var allThin = slices.Clone(thinTiles)

// OnlyThin makes products use one instance of the thin kernels, given by its number, wherever it
// applies, with the given turns, until the test ends. It returns the kernel's name.
func OnlyThin(t cleaner, stem string, number, turns int) string {
	cost, tiles, all := cyclesPerThinBlock, thinTiles, thinTurns
	t.Cleanup(func() { cyclesPerThinBlock, thinTiles, thinTurns = cost, tiles, all })
	cyclesPerThinBlock, thinTiles, thinTurns = -1e12, allThin[number:number+1], []int{turns}
	return thinTiles[0].symbol(stem)
}

// ThinTiles are the instances of thin kernels: their kinds, sizes, and how much of the longer side
// a warp or a thread has.
func ThinTiles() (kinds []string, sizes [][2]int) {
	for _, t := range allThin {
		kinds = append(kinds, string(t.kind))
		sizes = append(sizes, [2]int{t.max, t.each})
	}
	return kinds, sizes
}

// OnlySideBySide has products of matrices that are deep enough work with one of a precision's tiles
// for several slices at once, until the test ends.
func OnlySideBySide(t cleaner, precision Precision, number int) {
	noThin(t)
	tiles, all := &tilesTF32, tilesSlicedK
	if precision == BF16 {
		tiles = &tilesBF16
	}
	plain := *tiles
	t.Cleanup(func() { *tiles, tilesSlicedK = plain, all })
	*tiles, tilesSlicedK = slices.Clone(plain), map[Precision][]tile{precision: all[precision][number : number+1]}
	for i := range plain {
		(*tiles)[i].matrices = speed{1e-6, 1e-6}
	}
}

// SideBySide are the sizes of these tiles.
func SideBySide(precision Precision) (sizes [][2]int) {
	for _, t := range tilesSlicedK[precision] {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// OnlyPacked has all convolutions in a precision work on packed copies, with one of the tiles,
// until the test ends; with none below 0.
func OnlyPacked(t cleaner, precision Precision, number int) {
	tiles, others := &tilesPackedTF32, &tilesTF32
	if precision == BF16 {
		tiles, others = &tilesPackedBF16, &tilesBF16
	}
	before, plain, filter, groups, filters := *tiles, *others, speedPackedFilter[precision], tilesWGMMA, speedWGMMAFilter
	window, cores := cyclesPerWindow, speedWindowMMA
	t.Cleanup(func() {
		*tiles, *others, speedPackedFilter[precision], cyclesPerWindow, speedWindowMMA, tilesWGMMA = before, plain, filter, window, cores, groups
		speedWGMMAFilter = filters
	})
	cyclesPerWindow, speedWindowMMA, tilesWGMMA, speedWGMMAFilter = math.Inf(1), speed{}, nil, speed{}
	if number < 0 {
		*tiles, speedPackedFilter[precision] = nil, speed{}
		return
	}
	*tiles, *others = before[number:number+1], slices.Clone(plain)
	for i := range plain {
		(*others)[i].conv = speed{1e-6, 1e-6}
	}
}

var allGroups = slices.Clone(tilesWGMMA)

// OnlyGroups has all convolutions in bf16 that can be computed by wgmma, and those alone, work with
// one of its tiles, until the test ends.
func OnlyGroups(t cleaner, number int) {
	OnlyPacked(t, BF16, 0)
	tilesWGMMA, tilesPackedBF16 = allGroups[number:number+1], slices.Clone(tilesPackedBF16)
	tilesPackedBF16[0].speed = speed{1e-5, 1e-5}
}

// OnlyGroupFilters has all convolutions in bf16 that can be computed by wgmma, and the gradients of
// their filters, work so until the test ends.
func OnlyGroupFilters(t cleaner) {
	OnlyGroups(t, 0)
	speedWGMMAFilter = speed{1e6, 1e6}
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
func OnlyWindows(t cleaner, taps int) {
	OnlyPacked(t, TF32, -1)
	OnlyPacked(t, BF16, -1)
	before, window, cores := windowTaps, cyclesPerWindow, speedWindowMMA
	t.Cleanup(func() { windowTaps, cyclesPerWindow, speedWindowMMA = before, window, cores })
	windowTaps, cyclesPerWindow = []int{taps}, 8
	if taps == mmaTaps {
		windowTaps, speedWindowMMA = nil, speed{1, 1}
	}
	for _, tiles := range []*[]tile{&tilesFloat32, &tilesFloat64, &tilesFP32, &tilesTF32, &tilesBF16} {
		plain := *tiles
		t.Cleanup(func() { *tiles = plain })
		*tiles = slices.Clone(plain)
		for i := range plain {
			(*tiles)[i].conv = speed{1e-6, 1e-6}
		}
	}
}

// OnlyForwardOnWindows has convolutions of few channels work by windows on the tensor cores
// wherever they can, until the test ends.
func OnlyForwardOnWindows(t cleaner) {
	before := speedWindowMMA
	t.Cleanup(func() { speedWindowMMA = before })
	speedWindowMMA = speed{1e6, 1e6}
	for _, tiles := range []*[]tile{&tilesTF32, &tilesBF16} {
		plain := *tiles
		t.Cleanup(func() { *tiles = plain })
		*tiles = slices.Clone(plain)
		for i := range plain {
			(*tiles)[i].conv = speed{1e-6, 1e-6}
		}
	}
}

// PackedTiles are the sizes of the tiles of packed convolutions.
func PackedTiles(precision Precision) (sizes [][2]int) {
	for _, t := range packedTiles(&planner{Target: Target{Precision: precision}}) {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// SideBySideShared is the bytes of shared memory that one of the tiles for several slices at once
// needs.
func SideBySideShared(precision Precision, number int) int {
	return tilesSlicedK[precision][number].shared
}

// PooledLaunches is how many launches change because of pooling in an epilogue.
func PooledLaunches(launches []tensor.Launch) int {
	own, _ := separateScratch(launches)
	return len(findPoolings(own))
}

// Variants returns the calls that a launch has on its own, and those that it has in a step because
// of pooling in an epilogue, or nil. Workspace begins at base. Scratch buffers stay where they are.
func Variants(launches []tensor.Launch, i int, t Target, base int) (alone, pooled []Call) {
	alone = lower(&planner{Target: t, base: base}, &launches[i])
	if lowering := findPoolings(launches)[i]; lowering != nil {
		pooled = lowering(&planner{Target: t, base: base}, &launches[i])
	}
	return alone, pooled
}
