package kernel

// A product is computed one tile of at most microRows x panelColumns at a time.
// The right factor of a tile is a packed panel: depth rows of panelColumns
// contiguous elements. The left factor is read in place, one scalar per row and
// depth. Six rows of sixteen columns fill twelve of the sixteen registers of AVX2 and
// twenty-four of the thirty-two of NEON,
// fourteen rows fourteen of the thirty-two of AVX-512; there, fourteen rows of
// two panels side by side fill twenty-eight, and need half the loads.
const (
	panelColumns = 16
	minRows      = 6  // microRows in all but AVX-512
	maxRows      = 14 // in AVX-512
)

// vector is how many float32 the assembly treats at least: a register of AVX2, two of NEON.
const vector = 8

// maxDepth is the largest depth of a packed panel: 256 x 16 float32 are half of
// a first-level cache of 32 KiB, the left factor's rows take 6 or 14 KiB more.
const maxDepth = 256

// flags say what happens to a tile of sums before it is stored.
type flags int

const (
	flagAccumulate flags = 1 << iota // add what the output holds
	flagBiasRow                      // add bias[row]
	flagBiasColumn                   // add bias[column]
	flagReLU                         // replace negative values by zero; NaN stays
)

// tiles are rows cut into some of at most microRows each, below each other: tall ones of a height,
// then others a row lower, so that none is flat while its neighbours are full. Of some neighbours'
// rows alone, the tiles are the same.
type rowSplit struct{ count, tall, height int }

func splitRows(rows int) rowSplit {
	if rows <= microRows {
		return rowSplit{1, 1, rows}
	}
	count := ceilDiv(rows, microRows)
	height := ceilDiv(rows, count)
	return rowSplit{count, rows - count*(height-1), height}
}

// start is the first row of a tile, or the end of the last one.
func (t rowSplit) start(n int) int { return n*t.height - max(0, n-t.tall) }

// rows returns those of a tile.
func (t rowSplit) rows(n int) (lo, hi int) { return t.start(n), t.start(n + 1) }

// run is how many tiles from one on are as high as it, and how high.
func (t rowSplit) run(n int) (count, height int) {
	if n < t.tall {
		return t.tall - n, t.height
	}
	return t.count - n, t.height - 1
}

// depthBlocks is the number of packed panels that cover the given depth.
func depthBlocks(depth int) int { return ceilDiv(depth, maxDepth) }

// panelBatch is the number of panels of the given depth that fit where one of
// maxDepth does.
func panelBatch(depth int) int { return maxDepth / depth }

// left is the left factor of tiles below each other: element (i, k) of the first is
// data[i*rowStride + k*depthStride]. One of the strides is 1. Where tiles are packed, packed is the
// distance from one to the next; else it is 0, and rows of tiles below each other are rows of one
// matrix.
type leftFactor[T Float] struct {
	data                           []T
	rowStride, depthStride, packed int
}

// step is the distance from a tile of some rows to the next one.
func (a leftFactor[T]) step(rows int) int {
	if a.packed > 0 {
		return a.packed
	}
	return rows * a.rowStride
}

// tile is the left factor of tile n.
func (a leftFactor[T]) tile(t rowSplit, n int) leftFactor[T] {
	at := n * a.packed
	if a.packed == 0 {
		at = t.start(n) * a.rowStride
	}
	a.data = a.data[at:]
	return a
}

// biasOf is the part of a bias that belongs to some rows and all columns.
func biasOf[T Float](bias []T, lo, hi int, f flags) []T {
	if f&flagBiasRow != 0 {
		return bias[lo:hi]
	}
	return bias
}

// multiply computes tiles below each other, c[i*stride+j] = epilogue(sum_k a(i,k) b[k*16+j])
// for rows x 16 elements.
func multiply[T Float](rows, depth int, a leftFactor[T], b, c []T, stride int, bias []T, f flags) {
	if multiplyFast(rows, depth, a, b, c, stride, bias, f) {
		return
	}
	multiplyPart(rows, panelColumns, depth, a, b, c, stride, bias, f)
}

// multiplyPart is multiply for the first of the columns.
func multiplyPart[T Float](rows, columns, depth int, a leftFactor[T], b, c []T, stride int, bias []T, f flags) {
	t := splitRows(rows)
	for n := range t.count {
		lo, hi := t.rows(n)
		a := a.tile(t, n)
		var sums [maxRows * panelColumns]T
		multiplySums(hi-lo, depth, a, b, &sums)
		storeTile(hi-lo, columns, sums[:], c[lo*stride:], stride, biasOf(bias, lo, hi, f), f)
	}
}

// multiplyPair is multiply for two panels, the second of which lies panel elements behind the
// first, and their columns side by side.
func multiplyPair[T Float](rows, depth int, a leftFactor[T], b []T, panel int, c []T, stride int, bias []T, f flags) {
	if multiplyPairFast(rows, depth, a, b, panel, c, stride, bias, f) {
		return
	}
	multiply(rows, depth, a, b, c, stride, bias, f)
	if f&flagBiasColumn != 0 {
		bias = bias[panelColumns:]
	}
	multiply(rows, depth, a, b[panel:], c[panelColumns:], stride, bias, f)
}

// multiplySums computes the sums of a tile into sums, for tiles that are stored
// in parts by finish.
func multiplySums[T Float](rows, depth int, a leftFactor[T], b []T, sums *[maxRows * panelColumns]T) {
	if multiplyFast(rows, depth, a, b, sums[:], panelColumns, nil, 0) {
		return
	}
	multiplyStrided(rows, depth, a, b, sums)
}

// finish stores rows x columns sums, rows of panelColumns elements apart, with
// the epilogue that flags name.
func storeTile[T Float](rows, columns int, sums, c []T, stride int, bias []T, f flags) {
	for i := range rows {
		from := sums[i*panelColumns:][:columns]
		to := c[i*stride:][:columns]
		switch {
		case f&flagBiasRow != 0:
			value := bias[i]
			if f&flagAccumulate != 0 {
				for j, v := range from {
					to[j] = (v + to[j]) + value
				}
			} else {
				for j, v := range from {
					to[j] = v + value
				}
			}
		case f&flagBiasColumn != 0:
			values := bias[:columns]
			if f&flagAccumulate != 0 {
				for j, v := range from {
					to[j] = (v + to[j]) + values[j]
				}
			} else {
				for j, v := range from {
					to[j] = v + values[j]
				}
			}
		case f&flagAccumulate != 0:
			for j, v := range from {
				to[j] = v + to[j]
			}
		default:
			copy(to, from)
		}
		if f&flagReLU != 0 {
			for j, v := range to {
				if v < 0 {
					to[j] = 0
				}
			}
		}
	}
}

// multiplyTaps is multiply with a left factor given by tables, element (i, k) being
// data[taps[i]+depthOffsets[k]]; the only epilogue is accumulation. Of the taps, each together lie
// side by side.
func multiplyTaps[T Float](data []T, taps []int32, together int, depthOffsets []int32, b, c []T, stride int, accumulate bool) {
	if multiplyTapsFast(data, taps, together, depthOffsets, b, c, stride, accumulate) {
		return
	}
	f := flags(0)
	if accumulate {
		f = flagAccumulate
	}
	for i := 0; i < len(taps); i += maxRows {
		var sums [maxRows * panelColumns]T
		some := taps[i:min(i+maxRows, len(taps))]
		multiplyGathered(data, some, depthOffsets, b, &sums)
		storeTile(len(some), panelColumns, sums[:], c[i*stride:], stride, nil, f)
	}
}
