package kernel

// A product is computed one tile of at most panelRows x panelColumns at a time.
// The right factor of a tile is a packed panel: depth rows of panelColumns
// contiguous elements. The left factor is read in place, one scalar per row and
// depth. Six rows of sixteen columns fill twelve of the sixteen registers of AVX2 and
// twenty-four of the thirty-two of NEON,
// fourteen rows fourteen of the thirty-two of AVX-512; there, fourteen rows of
// two panels side by side fill twenty-eight, and need half the loads.
const (
	panelColumns = 16
	leastRows    = 6  // panelRows in all but AVX-512
	mostRows     = 14 // in AVX-512
)

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

// rowGroups is the number of tiles that cover the given rows; cut divides the
// rows among them, so that heights differ by at most one and no tile is flat
// while its neighbours are full.
func rowGroups(rows int) int { return ceilDiv(rows, panelRows) }

// depthBlocks is the number of packed panels that cover the given depth.
func depthBlocks(depth int) int { return ceilDiv(depth, maxDepth) }

// panelBatch is the number of panels of the given depth that fit where one of
// maxDepth does. Groups of rows go through them in one sweep, so that shallow
// products write long runs of their output.
func panelBatch(depth int) int { return maxDepth / depth }

// left is the left factor of a tile: element (i, k) is
// data[i*rowStride + k*depthStride]. One of the strides is 1.
type left[T Float] struct {
	data                   []T
	rowStride, depthStride int
}

// multiply computes a full tile, c[i*stride+j] = epilogue(sum_k a(i,k) b[k*16+j])
// for rows x 16 elements.
func multiply[T Float](rows, depth int, a left[T], b, c []T, stride int, bias []T, f flags) {
	if multiplyFast(rows, depth, a, b, c, stride, bias, f) {
		return
	}
	var sums [mostRows * panelColumns]T
	multiplyStrided(rows, depth, a, b, &sums)
	finish(rows, panelColumns, sums[:], c, stride, bias, f)
}

// multiplyPair is multiply for two panels, the second of which lies panel elements behind the
// first, and their columns side by side.
func multiplyPair[T Float](rows, depth int, a left[T], b []T, panel int, c []T, stride int, bias []T, f flags) {
	if multiplyPairFast(rows, depth, a, b, panel, c, stride, bias, f) {
		return
	}
	multiply(rows, depth, a, b, c, stride, bias, f)
	if f&flagBiasColumn != 0 {
		bias = bias[panelColumns:]
	}
	multiply(rows, depth, a, b[panel:], c[panelColumns:], stride, bias, f)
}

// multiplyPart computes the sums of a tile into sums, for tiles that are stored
// in parts by finish.
func multiplyPart[T Float](rows, depth int, a left[T], b []T, sums *[mostRows * panelColumns]T) {
	if multiplyFast(rows, depth, a, b, sums[:], panelColumns, nil, 0) {
		return
	}
	multiplyStrided(rows, depth, a, b, sums)
}

// finish stores rows x columns sums, rows of panelColumns elements apart, with
// the epilogue that flags name.
func finish[T Float](rows, columns int, sums, c []T, stride int, bias []T, f flags) {
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
	for i := 0; i < len(taps); i += mostRows {
		var sums [mostRows * panelColumns]T
		some := taps[i:min(i+mostRows, len(taps))]
		multiplyGathered(data, some, depthOffsets, b, &sums)
		finish(len(some), panelColumns, sums[:], c[i*stride:], stride, nil, f)
	}
}
