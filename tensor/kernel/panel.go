package kernel

// A product is computed one tile of at most panelRows x panelColumns at a time.
// The right factor of a tile is a packed panel: depth rows of panelColumns
// contiguous elements. The left factor is read in place, one scalar per row and
// depth. Six rows of sixteen columns fill twelve of the sixteen AVX registers.
const (
	panelRows    = 6
	panelColumns = 16
)

// maxDepth is the largest depth of a packed panel: 256 x 16 float32 are half of
// a first-level cache of 32 KiB, the left factor's rows take 6 KiB more.
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

// left is the left factor of a tile: element (i, k) is
// data[i*rowStride + k*depthStride].
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
	var sums [panelRows * panelColumns]T
	multiplyPortable(rows, depth, a, b, &sums)
	finish(rows, panelColumns, sums[:], c, stride, bias, f)
}

// multiplyPart computes the sums of a tile into sums, for tiles that are stored
// in parts by finish.
func multiplyPart[T Float](rows, depth int, a left[T], b []T, sums *[panelRows * panelColumns]T) {
	if multiplyFast(rows, depth, a, b, sums[:], panelColumns, nil, 0) {
		return
	}
	multiplyPortable(rows, depth, a, b, sums)
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

// multiplyPortable holds eight sums, two rows of four columns, in registers.
func multiplyPortable[T Float](rows, depth int, a left[T], b []T, sums *[panelRows * panelColumns]T) {
	b = b[:depth*panelColumns]
	for i := 0; i < rows; i += 2 {
		second := min(i+1, rows-1)
		row0 := a.data[i*a.rowStride:]
		row1 := a.data[second*a.rowStride:]
		for j := 0; j < panelColumns; j += 4 {
			var s00, s01, s02, s03, s10, s11, s12, s13 T
			at := 0
			for k := j; k+4 <= len(b); k += panelColumns {
				v := b[k : k+4 : k+4]
				a0, a1 := row0[at], row1[at]
				at += a.depthStride
				s00 += a0 * v[0]
				s01 += a0 * v[1]
				s02 += a0 * v[2]
				s03 += a0 * v[3]
				s10 += a1 * v[0]
				s11 += a1 * v[1]
				s12 += a1 * v[2]
				s13 += a1 * v[3]
			}
			o := sums[second*panelColumns+j:][:4]
			o[0], o[1], o[2], o[3] = s10, s11, s12, s13
			o = sums[i*panelColumns+j:][:4]
			o[0], o[1], o[2], o[3] = s00, s01, s02, s03
		}
	}
}

// multiplyTable is multiply with a left factor given by tables, element (i, k)
// being data[rowOffsets[i]+depthOffsets[k]]; the only epilogue is accumulation.
func multiplyTable[T Float](data []T, rowOffsets, depthOffsets []int32, b, c []T, stride int, accumulate bool) {
	if multiplyTableFast(data, rowOffsets, depthOffsets, b, c, stride, accumulate) {
		return
	}
	var sums [panelRows * panelColumns]T
	rows := len(rowOffsets)
	b = b[:len(depthOffsets)*panelColumns]
	for i := 0; i < rows; i += 2 {
		second := min(i+1, rows-1)
		row0 := data[rowOffsets[i]:]
		row1 := data[rowOffsets[second]:]
		for j := 0; j < panelColumns; j += 4 {
			var s00, s01, s02, s03, s10, s11, s12, s13 T
			for k, at := range depthOffsets {
				v := b[k*panelColumns+j:][:4:4]
				a0, a1 := row0[at], row1[at]
				s00 += a0 * v[0]
				s01 += a0 * v[1]
				s02 += a0 * v[2]
				s03 += a0 * v[3]
				s10 += a1 * v[0]
				s11 += a1 * v[1]
				s12 += a1 * v[2]
				s13 += a1 * v[3]
			}
			o := sums[second*panelColumns+j:][:4]
			o[0], o[1], o[2], o[3] = s10, s11, s12, s13
			o = sums[i*panelColumns+j:][:4]
			o[0], o[1], o[2], o[3] = s00, s01, s02, s03
		}
	}
	f := flags(0)
	if accumulate {
		f = flagAccumulate
	}
	finish(rows, panelColumns, sums[:], c, stride, nil, f)
}
