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

// TileSizes returns the sizes of the tiles for products of float32, in a precision, on GPUs with a
// compute capability.
func TileSizes(precision Precision, capability int) [][2]int {
	tiles, _ := tilesOf(&planner{Target: Target{Precision: precision, Capability: capability}}, tensor.Float32)
	return sizesOf(tiles)
}

// OnlyTile removes all other tiles from the tables that have one of this size, and all kernels on
// packed copies and for thin products.
func OnlyTile(t cleaner, rows, columns int) {
	OnlyPacked(t, TF32, -1)
	OnlyPacked(t, BF16, -1)
	noThin(t)
	sideBySide, rounded := tilesSlicedK, tilesRounded
	t.Cleanup(func() { tilesSlicedK, tilesRounded = sideBySide, rounded })
	tilesSlicedK, tilesRounded = nil, nil
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

// noThin makes all products of matrices use tiles.
func noThin(t cleaner) {
	before := cyclesPerThinBlock
	t.Cleanup(func() { cyclesPerThinBlock = before })
	cyclesPerThinBlock = math.Inf(1)
}

// OnlyHead makes a step use the kernel of head.go wherever it applies, with rows rows of the batch
// for each block, or nowhere if rows is 0.
func OnlyHead(t cleaner, rows int) {
	cost, allRows := cyclesPerHeadBlock, headRows
	t.Cleanup(func() { cyclesPerHeadBlock, headRows = cost, allRows })
	if cyclesPerHeadBlock = -1e12; rows == 0 {
		cyclesPerHeadBlock = math.Inf(1)
		return
	}
	headRows = []int{rows}
}

var allThin = slices.Clone(thinTiles)

// OnlyThin makes products use one instance of the thin kernels, with the given turns, wherever it
// applies. It returns the kernel's name.
func OnlyThin(t cleaner, stem string, number, turns int) string {
	cost, tiles, all := cyclesPerThinBlock, thinTiles, thinTurns
	t.Cleanup(func() { cyclesPerThinBlock, thinTiles, thinTurns = cost, tiles, all })
	cyclesPerThinBlock, thinTiles, thinTurns = -1e12, allThin[number:number+1], []int{turns}
	return thinTiles[0].symbol(stem)
}

// ThinTiles returns the instances of the thin kernels: their kinds, sizes, and how much of the
// longer side a warp or a thread has at once.
func ThinTiles() (kinds []string, sizes [][2]int) {
	for _, t := range allThin {
		kinds = append(kinds, string(t.kind))
		sizes = append(sizes, [2]int{t.max, t.each})
	}
	return kinds, sizes
}

// OnlyRounded makes products of matrices that can have a rounded tile use one of them, for any
// number of chains.
func OnlyRounded(t cleaner, number int) {
	noThin(t)
	all := tilesRounded
	t.Cleanup(func() { onlyRounded, tilesRounded = false, all })
	onlyRounded, tilesRounded = true, all[number:number+1]
}

// OnlyImageTile makes products that read images from the data set use one of their tiles.
func OnlyImageTile(t cleaner, number int) {
	all := tilesOfImages
	t.Cleanup(func() { tilesOfImages = all })
	tilesOfImages = all[number : number+1]
}

// ImageTiles returns the sizes of these tiles.
func ImageTiles() [][2]int { return sizesOf(tilesOfImages) }

// RoundedTiles returns the sizes of the tiles of other products that round their operands once.
func RoundedTiles() [][2]int { return sizesOf(tilesRounded) }

func sizesOf(tiles []tile) (sizes [][2]int) {
	for _, t := range tiles {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// OnlySlicedK makes products of matrices that are deep enough use one of a precision's tiles for
// two slices at once.
func OnlySlicedK(t cleaner, precision Precision, number int) {
	noThin(t)
	tiles, all := &tilesTF32, tilesSlicedK
	if precision == BF16 {
		tiles = &tilesBF16
	}
	plain, rounded := *tiles, tilesRounded
	t.Cleanup(func() { *tiles, tilesSlicedK, tilesRounded = plain, all, rounded })
	tilesRounded = nil
	*tiles, tilesSlicedK = slices.Clone(plain), map[Precision][]tile{precision: all[precision][number : number+1]}
	for i := range plain {
		(*tiles)[i].matrices = speed{1e-6, 1e-6}
	}
}

// SlicedKTiles returns the sizes of these tiles.
func SlicedKTiles(precision Precision) [][2]int { return sizesOf(tilesSlicedK[precision]) }

// slowConvolutions makes convolutions by the tiles of some tables cost more than by other kernels.
func slowConvolutions(t cleaner, tables ...*[]tile) {
	for _, tiles := range tables {
		plain := *tiles
		t.Cleanup(func() { *tiles = plain })
		*tiles = slices.Clone(plain)
		for i := range plain {
			(*tiles)[i].conv = speed{1e-6, 1e-6}
		}
	}
}

// OnlyPacked makes all convolutions in a precision work on packed copies, with one of the tiles;
// with none if number is negative.
func OnlyPacked(t cleaner, precision Precision, number int) {
	tiles, others := &tilesPackedTF32, &tilesTF32
	if precision == BF16 {
		tiles, others = &tilesPackedBF16, &tilesBF16
	}
	before, filter, groups, filters := *tiles, speedPackedFilter[precision], tilesWGMMA, speedWGMMAFilter
	window, cores, few := cyclesPerWindow, speedWindowMMA, useFewChannels
	useFewChannels = false
	t.Cleanup(func() {
		useFewChannels = few
		*tiles, speedPackedFilter[precision], cyclesPerWindow, speedWindowMMA, tilesWGMMA = before, filter, window, cores, groups
		speedWGMMAFilter = filters
	})
	cyclesPerWindow, speedWindowMMA, tilesWGMMA, speedWGMMAFilter = math.Inf(1), speed{}, nil, speed{}
	if number < 0 {
		*tiles, speedPackedFilter[precision] = nil, speed{}
		return
	}
	*tiles = before[number : number+1]
	slowConvolutions(t, others)
}

var allGroups = slices.Clone(tilesWGMMA)

// OnlyWGMMA makes convolutions in bf16 use one of wgmma's tiles wherever wgmma can compute them.
func OnlyWGMMA(t cleaner, number int) {
	OnlyPacked(t, BF16, 0)
	tilesWGMMA, tilesPackedBF16 = allGroups[number:number+1], slices.Clone(tilesPackedBF16)
	tilesPackedBF16[0].speed = speed{1e-5, 1e-5}
}

// OnlyWGMMAFilters makes convolutions in bf16 and their filters' gradients use wgmma wherever it
// can compute them.
func OnlyWGMMAFilters(t cleaner) {
	OnlyWGMMA(t, 0)
	speedWGMMAFilter = speed{1e6, 1e6}
}

// WGMMATiles returns the rows and columns of pixels of the tiles by wgmma.
func WGMMATiles() (sizes [][2]int) {
	for _, t := range allGroups {
		sizes = append(sizes, [2]int{t.height, t.strips * stripWidth})
	}
	return sizes
}

// OnlyWindows makes the gradients of filters work on windows wherever they can, by blocks of a
// number of taps: on the tensor cores if the ordinary cores have no kernel with that number.
func OnlyWindows(t cleaner, taps int) {
	OnlyPacked(t, TF32, -1)
	OnlyPacked(t, BF16, -1)
	before, window, cores := windowTaps, cyclesPerWindow, speedWindowMMA
	t.Cleanup(func() { windowTaps, cyclesPerWindow, speedWindowMMA = before, window, cores })
	windowTaps, cyclesPerWindow = []int{taps}, 8
	if taps == mmaTaps {
		windowTaps, speedWindowMMA = nil, speed{1, 1}
	}
	slowConvolutions(t, &tilesFloat32, &tilesFloat64, &tilesFP32, &tilesTF32, &tilesBF16)
}

// OnlyForwardOnWindows makes convolutions of few channels work on windows on the tensor cores
// wherever they can.
func OnlyForwardOnWindows(t cleaner) {
	before := speedWindowMMA
	t.Cleanup(func() { speedWindowMMA = before })
	speedWindowMMA = speed{1e6, 1e6}
	slowConvolutions(t, &tilesTF32, &tilesBF16)
}

// PackedTiles returns the sizes of the tiles of packed convolutions.
func PackedTiles(precision Precision) (sizes [][2]int) {
	for _, t := range packedTiles(&planner{Target: Target{Precision: precision}}) {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// SlicedKShared returns the bytes of shared memory that one of the tiles for several slices at once
// needs.
func SlicedKShared(precision Precision, number int) int {
	return tilesSlicedK[precision][number].shared
}

// PooledLaunches returns the number of launches that pooling in an epilogue changes.
func PooledLaunches(launches []tensor.Launch) int {
	own, _ := separateScratch(launches)
	return len(findPoolings(own, make([]lowering, len(own))))
}

// Variants returns the calls of launch i on its own and, if pooling in an epilogue changes them,
// its calls in a step. Workspace begins at base. Scratch buffers stay where they are.
func Variants(launches []tensor.Launch, i int, t Target, base int) (separate, pooled []Call) {
	alone := slices.Repeat([]lowering{lower}, len(launches))
	lowerings := findPoolings(launches, alone)
	separate = alone[i](&planner{Target: t, base: base}, &launches[i])
	if lowering := lowerings[i]; lowering != nil {
		pooled = lowering(&planner{Target: t, base: base}, &launches[i])
	}
	return separate, pooled
}
