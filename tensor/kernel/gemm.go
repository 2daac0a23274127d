package kernel

import "github.com/pkg/errors"

// BiasKind is the axis of a product along which a bias is added.
type BiasKind uint8

// The kinds of bias.
const (
	NoBias     BiasKind = iota
	BiasRow             // bias [M]: one value per row
	BiasColumn          // bias [N]: one value per column
)

// Gemm describes a matrix product with an optional epilogue:
//
//	C[M N] = f(op(A)[M K] op(B)[K N] + C + bias)
//
// The C on the right is added only if Accumulate is set, the bias along the axis given by Bias,
// and f is the ReLU if ReLU is set. A is stored as [M K], or as [K M] with TransposeA; B as [K N],
// or as [N K] with TransposeB. A dense layer, for example, has M = batch, K = inputs, N = outputs
// and BiasColumn.
type Gemm struct {
	M, N, K                int
	TransposeA, TransposeB bool
	Accumulate             bool
	Bias                   BiasKind
	ReLU                   bool
	// PackB packs B in a phase of its own, so that the packed B can be kept for further products.
	PackB bool
}

// Validate returns an error for sizes below 1, matrices of 2^31 elements or more, and an unknown
// Bias.
func (g Gemm) Validate() error {
	if g.M < 1 || g.N < 1 || g.K < 1 {
		return errors.Errorf("kernel: gemm: M, N, K must be at least 1, got %d, %d, %d", g.M, g.N, g.K)
	}
	if g.Bias > BiasColumn {
		return errors.Errorf("kernel: gemm: unknown bias kind %d", g.Bias)
	}
	for _, s := range [][2]int{{g.M, g.K}, {g.K, g.N}, {g.M, g.N}} {
		if !fits(s[0], s[1]) {
			return errors.Errorf("kernel: gemm: a matrix must have at most %d elements, got %d x %d", maxElements, s[0], s[1])
		}
	}
	return nil
}

// gemmPlan divides the output into blocks of rows times blocks of columns. A tile multiplies the
// rows of one block by the panels of the other, in blocks of the depth K:
//
//	for each block of the depth            (maxDepth)
//	    pack the panels of B, unless packed in a phase of their own
//	    for each panel                     (panelColumns)
//	        for each register tile of rows (microRows)
//	            microkernel
//
// In the terms of BLIS, maxDepth is KC, the rows of a tile MC, microRows MR and panelColumns NR.
type gemmPlan struct {
	Gemm
	rowBlocks, columnBlocks int
	packTiles               int // tiles of the packing phase; 0 if there is none
	inPlace                 bool
	packA, packB            bool
	packedB                 int // offset of packed B in the workspace, after packed A
	together                int // panels per call of the microkernel; a tile has a multiple of them
}

// Limits of a tile of a product.
const (
	// gemmTileFlops is the work of a tile, in floating-point operations, where there is a choice:
	// some 5 microseconds.
	gemmTileFlops = 1 << 19
	// gemmPackFlops is the work above which a separate packing phase pays.
	gemmPackFlops = 4 << 20
	// gemmTileRows bounds the rows of a tile: 192 rows x maxDepth float32 of A
	// stay in a second-level cache of 256 KiB and more.
	gemmTileRows = 192
	// gemmWideRows and gemmAllRows are the limits for AVX-512: 256 KiB of A, and 512 KiB if one
	// tile has all rows.
	gemmWideRows = 256
	gemmAllRows  = 512
	// gemmTilePanels bounds the panels of depth maxDepth that a tile packs at a time.
	gemmTilePanels = 8
	// gemmRunPanels is the number of panels that a tile of a deep product packs if there are enough
	// tiles: 256 bytes of each row of B, which is usually on a page of its own.
	gemmRunPanels = 4
	// gemmPackColumns is the minimum number of columns for which packing A pays: with fewer, its
	// rows are not read often enough.
	gemmPackColumns = 64
	// gemmAlias is a row stride, in elements, at whose multiples rows compete for the same few
	// cache sets.
	gemmAlias = 512
)

// Plan prepares the product. Operands: A and B as described, Bias of M or N elements if there is
// one, Out is the matrix C.
func (g Gemm) Plan() (Routine, error) {
	if err := g.Validate(); err != nil {
		return Routine{}, err
	}
	// The output is divided into blocks of nearly equal height and, within the limits of a tile's
	// panels, into blocks of columns with about gemmTileFlops of work each.
	p := gemmPlan{Gemm: g, rowBlocks: ceilDiv(g.M, g.tileRows())}
	rows := ceilDiv(g.M, p.rowBlocks)
	panels := ceilDiv(g.N, panelColumns)
	depth := min(g.K, maxDepth)
	// each is the number of panels of a tile: enough for gemmTileFlops of work, or more if there
	// would be more than some 2*tileCount tiles otherwise, or if longer runs of B's rows can be
	// packed, and a multiple of the panels per call.
	each := max(gemmTileFlops/(2*rows*panelColumns*g.K), panels*p.rowBlocks/(2*tileCount))
	if !g.TransposeB && g.K > maxDepth {
		each = max(each, min(panels/tileCount, gemmRunPanels))
	}
	each = max(1, min(each, panels, gemmTilePanels*panelBatch(depth)))
	p.together = panelsTogether(panels)
	each = max(each/p.together, 1) * p.together
	p.columnBlocks = ceilDiv(panels, each)
	bias := 0
	switch g.Bias {
	case BiasRow:
		bias = g.M
	case BiasColumn:
		bias = g.N
	}
	plan := Routine{
		Scratch: each * depth * panelColumns,
		kind:    kindGemm, plan: &p,
		sizeA: g.M * g.K, sizeB: g.K * g.N, sizeBias: bias, sizeOut: g.M * g.N,
	}
	if p.inPlace = g.readsInPlace(); p.inPlace {
		plan.Scratch = g.M * each * panelColumns
	} else if 2*g.M*g.N*g.K > gemmPackFlops {
		// A is packed in a phase of its own if its rows, read in place, would compete for few cache
		// sets: a transposed A, or one whose row stride is a multiple of gemmAlias.
		p.packA = (g.TransposeA || g.K%gemmAlias == 0) && g.N >= gemmPackColumns
		// With several blocks of rows, each would pack the same panels of B: pack them once.
		p.packB = p.rowBlocks > 1
	}
	p.packB = p.packB || g.PackB
	if p.packA {
		p.packTiles = splitRows(g.M).count
		p.packedB = p.packTiles * packedRows() * g.K
		plan.Workspace = p.packedB
	}
	if p.packB {
		p.packTiles = max(p.packTiles, panels)
		plan.Workspace += panels * panelColumns * g.K
		plan.Scratch = 0
	}
	if p.packA || p.packB {
		p.packTiles = min(p.packTiles, tileCount)
		plan.Phases = append(plan.Phases, p.packTiles)
	}
	if p.packB && !p.packA {
		plan.Preparation = 1
	}
	plan.Phases = append(plan.Phases, p.rowBlocks*p.columnBlocks)
	return plan, nil
}

// tileRows returns the maximum number of rows of a tile, so that its part of A stays in the
// second-level cache. AVX-512 processors have larger ones; there, taller tiles pack the same panels
// less often.
func (g Gemm) tileRows() int {
	rows := gemmTileRows
	switch {
	case isa == avx512 && g.M <= gemmAllRows:
		return gemmAllRows
	case isa == avx512:
		rows = gemmWideRows
	}
	return rows * maxDepth / min(g.K, maxDepth)
}

// panelsTogether returns the number of panels that one call of the microkernel multiplies, given
// the number of panels: AVX-512 has registers for two.
func panelsTogether(panels int) int {
	if isa == avx512 {
		return min(2, panels)
	}
	return 1
}

// panels returns the panels [lo, hi) of a tile. Consecutive tiles have the same rows of A, which
// stay in the second-level cache.
func (p *gemmPlan) panels(tile int) (lo, hi int) {
	all := ceilDiv(p.N, panelColumns)
	lo, hi = splitRange(ceilDiv(all, p.together), p.columnBlocks, tile%p.columnBlocks)
	return lo * p.together, min(hi*p.together, all)
}

// gemmRun computes a tile of either phase.
func gemmRun[T Float](p *gemmPlan, phase, tile int, o Operands[T]) {
	if p.packTiles > 0 && phase == 0 {
		if p.packA {
			packMatrixA(p, tile, o.A, o.Workspace)
		}
		if p.packB {
			packMatrixB(p, tile, o.B, o.Workspace[p.packedB:])
		}
		return
	}
	if p.inPlace {
		gemmInPlace(p, tile, o)
		return
	}
	gemmTile(p, tile, o)
}

// packedRows returns the stride between consecutive depths of a packed group of rows. In AVX-512
// each depth has a cache line of its own.
func packedRows() int {
	if isa == avx512 {
		return panelColumns
	}
	return minRows
}

// packMatrixA packs some groups of microRows rows of A. A group holds, for each depth, the elements
// of its rows side by side, so that the microkernel reads them in order.
func packMatrixA[T Float](p *gemmPlan, tile int, a, packed []T) {
	groups, distance := splitRows(p.M), packedRows()
	lo, hi := splitRange(groups.count, p.packTiles, tile)
	if !p.TransposeA {
		for group := lo; group < hi; group++ {
			i, end := groups.rows(group)
			to, from := packed[group*distance*p.K:][:distance*p.K], a[i*p.K:end*p.K]
			if isa == avx512 {
				packColumns(to, from, p.K, p.K, end-i)
			} else {
				packGroup(to, from, end-i, p.K)
			}
		}
		return
	}
	// Process only a few rows of the source at a time, since neighbouring groups read the same
	// cache lines.
	const few = 16
	for k0 := 0; k0 < p.K; k0 += few {
		k1 := min(k0+few, p.K)
		for group := lo; group < hi; group++ {
			i, end := groups.rows(group)
			from, to := a[k0*p.M+i:(k1-1)*p.M+end], packed[(group*p.K+k0)*distance:][:(k1-k0)*distance]
			// Whole vectors are copied, which include elements of the next group: in AVX-512 these
			// are never read, otherwise the next depth's elements replace them.
			switch {
			case isa == avx512 && (k1-1)*p.M+i+panelColumns <= len(a):
				from := a[k0*p.M+i:]
				for k := range k1 - k0 {
					row := *(*[panelColumns]T)(from[k*p.M:])
					*(*[panelColumns]T)(to[k*panelColumns:]) = row
				}
			case isa != avx512 && k1 < p.K && (k1-1)*p.M+i+vector <= len(a):
				from, to := a[k0*p.M+i:], packed[(group*p.K+k0)*distance:]
				for k := range k1 - k0 {
					row := *(*[vector]T)(from[k*p.M:])
					*(*[vector]T)(to[k*minRows:]) = row
				}
			default:
				for k := range k1 - k0 {
					copy(to[k*distance:], from[k*p.M:][:end-i])
				}
			}
		}
	}
}

// packGroup transposes a group of at most minRows rows of the given depth.
func packGroup[T Float](to, from []T, rows, depth int) {
	done := packGroupFast(to, from, rows, depth)
	for i := range rows {
		for k := done; k < depth; k++ {
			to[k*minRows+i] = from[i*depth+k]
		}
	}
}

// packMatrixB packs a part of B: all panels of one block of the depth before the next block's. If
// B's columns are contiguous in memory the part is a range of panels, otherwise a range of the
// depth.
func packMatrixB[T Float](p *gemmPlan, tile int, b, packed []T) {
	panels, blocks := ceilDiv(p.N, panelColumns), depthBlocks(p.K)
	total := p.K
	if p.TransposeB {
		total = panels
	}
	lo, hi := splitRange(total, p.packTiles, tile)
	for block := range blocks {
		k0, k1 := splitRange(p.K, blocks, block)
		if p.TransposeB {
			if lo < hi {
				packPanels(p, packedPanels(p, packed, k0, k1, lo), b, k0, k1, lo, hi)
			}
			continue
		}
		if from, to := max(k0, lo), min(k1, hi); from < to {
			target := packed[(panels*k0+from-k0)*panelColumns:]
			packRows(target, (k1-k0)*panelColumns, b[from*p.N:], p.N, to-from, p.N)
		}
	}
}

// packedPanels returns the panels of depths [k0, k1) that packMatrixB packed, starting with the
// given one.
func packedPanels[T Float](p *gemmPlan, packed []T, k0, k1, panel int) []T {
	return packed[(ceilDiv(p.N, panelColumns)*k0+panel*(k1-k0))*panelColumns:]
}

// packPanels packs panels [lo, hi) of B for depths [k0, k1).
func packPanels[T Float](p *gemmPlan, to, b []T, k0, k1, lo, hi int) {
	size := (k1 - k0) * panelColumns
	if !p.TransposeB {
		j := lo * panelColumns
		packRows(to, size, b[k0*p.N+j:], p.N, k1-k0, min(hi*panelColumns, p.N)-j)
		return
	}
	for n := lo; n < hi; n++ {
		j := n * panelColumns
		packColumns(to[(n-lo)*size:], b[j*p.K+k0:], p.K, k1-k0, min(panelColumns, p.N-j))
	}
}

// gemmTile computes one block of the output. The panels of B are packed once for all rows of the
// block.
func gemmTile[T Float](p *gemmPlan, tile int, o Operands[T]) {
	groups := splitRows(p.M)
	group, end := splitRange(groups.count, p.rowBlocks, tile/p.columnBlocks)
	lo, hi := groups.start(group), groups.start(end)
	panelLo, panelHi := p.panels(tile)
	blocks := depthBlocks(p.K)
	for block := range blocks {
		k0, k1 := splitRange(p.K, blocks, block)
		panels := o.Scratch
		if p.packB {
			panels = packedPanels(p, o.Workspace[p.packedB:], k0, k1, panelLo)
		} else {
			packPanels(p, panels, o.B, k0, k1, panelLo, panelHi)
		}
		var a leftFactor[T]
		switch {
		case p.packA:
			rows := packedRows()
			a = leftFactor[T]{data: o.Workspace[(group*p.K+k0)*rows:], rowStride: 1, depthStride: rows, packed: p.K * rows}
		case p.TransposeA:
			a = leftFactor[T]{data: o.A[k0*p.M+lo:], rowStride: 1, depthStride: p.M}
		default:
			a = leftFactor[T]{data: o.A[lo*p.K+k0:], rowStride: p.K, depthStride: 1}
		}
		// Sums of a block of the depth are stored to C, and the next block adds to them there: the
		// microkernel's registers hold the sums of one register tile only.
		f := p.epilogue(block == 0, block == blocks-1)
		bias := biasOf(o.Bias, lo, hi, f)
		size := (k1 - k0) * panelColumns
		for n := panelLo; n < panelHi; {
			n += gemmPanel(p, hi-lo, k1-k0, a, n, panelHi, panels[(n-panelLo)*size:], o.Out[lo*p.N+n*panelColumns:], bias, f)
		}
	}
}

// gemmPanel multiplies some rows by packed panel n, and also by panel n+1 if that is before end and
// the microkernel takes pairs. It returns the number of panels.
func gemmPanel[T Float](p *gemmPlan, rows, depth int, a leftFactor[T], n, end int, panels, c, bias []T, f flags) int {
	if f&flagBiasColumn != 0 {
		bias = bias[n*panelColumns:]
	}
	size := depth * panelColumns
	switch rest := p.N - n*panelColumns; {
	case rest >= 2*panelColumns && n+1 < end && p.together > 1:
		multiplyPair(rows, depth, a, panels[:2*size], size, c, p.N, bias, f)
		return 2
	case rest >= panelColumns:
		multiply(rows, depth, a, panels[:size], c, p.N, bias, f)
	default:
		multiplyPart(rows, rest, depth, a, panels[:size], c, p.N, bias, f)
	}
	return 1
}

// epilogue returns the flags for one block of the depth. Blocks after the first add to the sums
// that the output already holds; the last one adds the bias and applies the ReLU.
func (g Gemm) epilogue(first, last bool) flags {
	var f flags
	if g.Accumulate || !first {
		f |= flagAccumulate
	}
	if last && g.Bias == BiasRow {
		f |= flagBiasRow
	}
	if last && g.Bias == BiasColumn {
		f |= flagBiasColumn
	}
	if last && g.ReLU {
		f |= flagReLU
	}
	return f
}
