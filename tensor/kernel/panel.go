package kernel

import "math"

// A product is computed one register tile of at most microRows x panelColumns at a time (MR x NR in
// BLIS): its sums stay in registers over the whole depth. The right factor of a tile is a packed
// panel, depth rows of panelColumns contiguous elements. The left factor is usually read in place,
// one scalar per row and depth. Each step of the depth is then
//
//	sums[i][0:16] += a[i][k] * panel[k][0:16]   for all rows i of the tile
//
// Sums of 6 x 16 fill 12 of AVX2's 16 registers and 24 of NEON's 32. In AVX-512, 14 x 16 fill 14 of
// 32 registers; 14 rows of two panels side by side fill 28 and need half the loads per product.
const (
	panelColumns = 16
	minRows      = 6  // microRows of all instruction sets except AVX-512
	maxRows      = 14 // microRows of AVX-512
)

// microRows and tableRows are the heights of the register tiles of the instruction set in use. Only
// tests change them.
var microRows, tableRows = isa.rows()

// rows returns the rows of a full register tile: in general, and with a left factor given by
// tables, whose addresses also need registers.
func (i instructionSet) rows() (panel, table int) {
	if i == avx512 {
		return maxRows, 10
	}
	return minRows, minRows
}

// maxDepth is the maximum depth of a packed panel: 256 x 16 float32 are half of a first-level cache
// of 32 KiB, and the left factor's rows take 6 or 14 KiB more.
const maxDepth = 256

// flags select the epilogue of a tile, which is applied before its sums are stored. The upper half
// has the bits of the ceiling, a float32, if there is one.
type flags uint64

const (
	flagAccumulate flags = 1 << iota // add what the output holds
	flagBiasRow                      // add bias[row]
	flagBiasColumn                   // add bias[column]
	flagReLU                         // replace negative values by zero; NaN stays
	flagCeiling                      // then replace values above the ceiling by it
)

// ceilingBit is the position of the ceiling in flags.
const ceilingBit = 32

// ceilingFlags returns the flags for a ceiling.
func ceilingFlags(ceiling float32) flags {
	return flagCeiling | flags(math.Float32bits(ceiling))<<ceilingBit
}

func (f flags) ceiling() float32 { return math.Float32frombits(uint32(f >> ceilingBit)) }

// rowSplit is a division of rows into register tiles of at most microRows rows: first tall tiles of
// the given height, then tiles one row lower. Equal heights avoid one flat tile at the end, which
// would cost as much time as a full one: 15 rows in AVX2 are three tiles of 5, not 6 + 6 + 3. The
// tiles of a range that starts and ends at a tile are the same as in the whole.
type rowSplit struct{ count, tall, height int }

// splitRows divides rows into register tiles.
func splitRows(rows int) rowSplit {
	if rows <= microRows {
		return rowSplit{1, 1, rows}
	}
	count := ceilDiv(rows, microRows)
	height := ceilDiv(rows, count)
	return rowSplit{count, rows - count*(height-1), height}
}

// start returns the first row of a tile; start(count) is the number of rows.
func (t rowSplit) start(n int) int { return n*t.height - max(0, n-t.tall) }

// rows returns the rows [lo, hi) of a tile.
func (t rowSplit) rows(n int) (lo, hi int) { return t.start(n), t.start(n + 1) }

// run returns the number of tiles, from tile n on, that have the same height, and the height.
func (t rowSplit) run(n int) (count, height int) {
	if n < t.tall {
		return t.tall - n, t.height
	}
	return t.count - n, t.height - 1
}

// depthBlocks returns the number of packed panels that cover the given depth.
func depthBlocks(depth int) int { return ceilDiv(depth, maxDepth) }

// panelBatch returns the number of panels of the given depth that fit where one of maxDepth does.
func panelBatch(depth int) int { return maxDepth / depth }

// leftFactor is the left factor of tiles below each other: element (i, k) of the first tile is
// data[i*rowStride + k*depthStride]. One of the strides is 1. If the tiles are packed, packed is
// the distance from one tile to the next; otherwise it is 0, and all tiles are rows of one matrix.
type leftFactor[T Float] struct {
	data                           []T
	rowStride, depthStride, packed int
}

// step returns the distance from a tile of the given rows to the next one.
func (a leftFactor[T]) step(rows int) int {
	if a.packed > 0 {
		return a.packed
	}
	return rows * a.rowStride
}

// tile returns the left factor of tile n.
func (a leftFactor[T]) tile(t rowSplit, n int) leftFactor[T] {
	at := n * a.packed
	if a.packed == 0 {
		at = t.start(n) * a.rowStride
	}
	a.data = a.data[at:]
	return a
}

// biasOf returns the part of a bias that belongs to rows [lo, hi) and all columns.
func biasOf[T Float](bias []T, lo, hi int, f flags) []T {
	if f&flagBiasRow != 0 {
		return bias[lo:hi]
	}
	return bias
}
