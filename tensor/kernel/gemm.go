package kernel

import "github.com/pkg/errors"

// BiasKind says along which axis of a product a bias is added.
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
// where C is added when Accumulate is set, the bias as Bias says, and f is the
// ReLU when ReLU is set. A is stored [M K], or [K M] when TransposeA is set; B is
// stored [K N], or [N K] when TransposeB is set.
type Gemm struct {
	M, N, K                int
	TransposeA, TransposeB bool
	Accumulate             bool
	Bias                   BiasKind
	ReLU                   bool
}

// Validate returns an error when a size is not positive, a matrix has 2^31 elements or more, or
// Bias is unknown.
func (g Gemm) Validate() error {
	if g.M < 1 || g.N < 1 || g.K < 1 {
		return errors.Errorf("kernel: gemm: sizes M, N, K are %d, %d, %d, want at least 1", g.M, g.N, g.K)
	}
	if g.Bias > BiasColumn {
		return errors.Errorf("kernel: gemm: unknown bias kind %d", g.Bias)
	}
	for _, s := range [][2]int{{g.M, g.K}, {g.K, g.N}, {g.M, g.N}} {
		if _, ok := product(s[0], s[1]); !ok {
			return errors.Errorf("kernel: gemm: a matrix of %d x %d has more than %d elements", s[0], s[1], maxElements)
		}
	}
	return nil
}

// gemmPlan cuts the output into blocks of rows times blocks of columns.
type gemmPlan struct {
	Gemm
	rowBlocks, columnBlocks int
}

// gemmTileFlops is the least work, in floating-point operations, that a tile is
// given where there is a choice: some 30 microseconds.
const gemmTileFlops = 2 << 20

// gemmBlockRows bounds the rows of a tile: 192 rows x maxDepth float32 of A stay
// in a second-level cache of 256 KiB and more.
const gemmBlockRows = 192

// Plan makes the product ready. Operands: A and B as described, Bias of M or N
// elements if any, Out the matrix C.
func (g Gemm) Plan() (Plan, error) {
	if err := g.Validate(); err != nil {
		return Plan{}, err
	}
	p := gemmPlan{Gemm: g, rowBlocks: ceilDiv(g.M, gemmBlockRows)}
	rows := ceilDiv(g.M, p.rowBlocks)
	panels := ceilDiv(g.N, panelColumns)
	each := max(1, gemmTileFlops/(2*rows*panelColumns*g.K))
	p.columnBlocks = ceilDiv(panels, each)
	bias := 0
	switch g.Bias {
	case BiasRow:
		bias = g.M
	case BiasColumn:
		bias = g.N
	}
	return Plan{
		Phases:  []int{p.rowBlocks * p.columnBlocks},
		Scratch: min(g.K, maxDepth) * panelColumns,
		kind:    kindGemm,
		sizeA:   g.M * g.K, sizeB: g.K * g.N, sizeBias: bias, sizeOut: g.M * g.N,
		gemm: p,
	}, nil
}

// gemmTile computes one block of the output, panel by panel; each panel is
// packed once and used for all rows of the block.
func gemmTile[T Float](p *gemmPlan, tile int, o Operands[T]) {
	groupLo, groupHi := cut(rowGroups(p.M), p.rowBlocks, tile%p.rowBlocks)
	panelLo, panelHi := cut(ceilDiv(p.N, panelColumns), p.columnBlocks, tile/p.rowBlocks)
	blocks := depthBlocks(p.K)
	for block := range blocks {
		k0, k1 := cut(p.K, blocks, block)
		f := p.epilogue(block == 0, block == blocks-1)
		for n := panelLo; n < panelHi; n++ {
			j := n * panelColumns
			columns := min(panelColumns, p.N-j)
			if p.TransposeB {
				packColumns(o.Scratch, o.B[j*p.K+k0:], p.K, k1-k0, columns)
			} else {
				packRows(o.Scratch, o.B[k0*p.N+j:], p.N, k1-k0, columns)
			}
			for group := groupLo; group < groupHi; group++ {
				gemmGroup(p, group, k0, k1, j, columns, o, f)
			}
		}
	}
}

// gemmGroup multiplies one group of rows by the packed panel in the scratch.
func gemmGroup[T Float](p *gemmPlan, group, k0, k1, j, columns int, o Operands[T], f flags) {
	i, end := cut(p.M, rowGroups(p.M), group)
	a := left[T]{data: o.A[i*p.K+k0:], rowStride: p.K, depthStride: 1}
	if p.TransposeA {
		a = left[T]{data: o.A[k0*p.M+i:], rowStride: 1, depthStride: p.M}
	}
	bias := o.Bias
	switch p.Bias {
	case BiasRow:
		bias = bias[i:]
	case BiasColumn:
		bias = bias[j:]
	}
	c := o.Out[i*p.N+j:]
	if columns == panelColumns {
		multiply(end-i, k1-k0, a, o.Scratch, c, p.N, bias, f)
		return
	}
	var sums [panelRows * panelColumns]T
	multiplyPart(end-i, k1-k0, a, o.Scratch, &sums)
	finish(end-i, columns, sums[:], c, p.N, bias, f)
}

// epilogue returns the flags of one block of the depth: later blocks add to the
// earlier ones' sums, the last adds the bias and applies the ReLU.
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
