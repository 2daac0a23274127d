package kernel

import (
	"github.com/pkg/errors"
)

// Float constrains tensor elements: float32 for training, float64 for reference computations.
type Float interface{ ~float32 | ~float64 }

// Routine is a description prepared to run: its phases, memory requirements and tables. It is
// immutable, so any number of goroutines may share it.
//
// Rows and Parts let package tensor fuse a routine with its neighbours (see [RunRows]).
type Routine struct {
	Phases     []int // the number of tiles of each phase
	Workspace  int   // elements shared by all tiles of a call; undefined at first, kept between phases
	Scratch    int   // elements private to one worker; undefined before every tile
	Rows, Unit int   // rows of A, Out and pooling's B, or of A and B of a filter's gradient; Rows is 0 if RunRows does not apply
	Parts      []int // of a filter's gradient: the first row of each partial sum, and the end

	kind                            kind
	sizeA, sizeB, sizeBias, sizeOut int
	gemm                            gemmPlan
	conv                            convPlan
	scatter                         scatterPlan
	lines                           linesPlan
	winograd                        winogradPlan
	gradient                        winogradGradient
	pool                            poolPlan
}

type kind uint8

const (
	kindGemm kind = iota + 1
	kindConv2DForward
	kindConv2DBackwardInput
	kindConv2DScatter
	kindConv2DBackwardFilter
	kindConv2DLines
	kindConv2DWinograd
	kindConv2DWinogradFilter
	kindMaxPoolForward
	kindMaxPoolBackward
	kindAveragePoolForward
	kindAveragePoolBackward
)

// Winograd reports whether the routine is a convolution by transformed patches, which takes fewer
// operations than the definition.
func (p *Routine) Winograd() bool {
	return p.kind == kindConv2DWinograd || p.kind == kindConv2DWinogradFilter
}

// Operands are the slices of one call. The method that makes the routine ([Gemm.Plan],
// [Conv2D.Forward] and others) documents A, B and Out, whose lengths must be those of the tensors.
// Bias is used only by routines that ask for one. Workspace and Scratch may be longer than the
// routine requires. Out must not overlap any other slice.
type Operands[T Float] struct {
	A, B, Bias, Out    []T
	Workspace, Scratch []T
	Add                bool // RunRows adds to the sums in Workspace
}

// Run computes one tile of one phase. It panics if the tile or a slice's length does not match the
// routine. Concurrent tiles share all operands except Scratch.
func Run[T Float](p *Routine, phase, tile int, o Operands[T]) {
	p.check(phase, tile, len(o.A), len(o.B), len(o.Bias), len(o.Out), len(o.Workspace), len(o.Scratch))
	runTile(p, phase, tile, p.Rows, o)
}

// runTile computes a tile of a phase. rows is the number of rows that the operands hold, if the
// routine has rows.
func runTile[T Float](p *Routine, phase, tile, rows int, o Operands[T]) {
	switch p.kind {
	case kindGemm:
		gemmRun(&p.gemm, phase, tile, o)
	case kindConv2DForward:
		convTile(&p.conv, tile, rows, o.A, o.B, o.Bias, o.Out, o.Scratch)
	case kindConv2DBackwardInput:
		if phase == 0 {
			flipFilter(&p.conv, tile, o.B, o.Workspace)
		} else {
			convTile(&p.conv, tile, rows, o.A, o.Workspace, nil, o.Out, o.Scratch)
		}
	case kindConv2DScatter:
		if phase == 0 {
			packFilter(&p.scatter, tile, o.B, o.Workspace)
		} else {
			scatterTile(&p.scatter, tile, rows, o)
		}
	case kindConv2DBackwardFilter:
		if phase == 0 {
			filterTile(&p.conv, tile, o)
		} else {
			combineFilter(&p.conv, tile, o.Workspace, o.Out)
		}
	case kindConv2DLines:
		if phase == 0 {
			linesTile(&p.lines, tile, o)
		} else {
			combineLines(&p.lines, tile, o.Workspace, o.Out)
		}
	case kindConv2DWinograd:
		if phase == 0 {
			winogradFilter(&p.winograd, tile, o.B, o.Workspace, o.Scratch)
		} else {
			winogradTile(&p.winograd, tile, rows, o.A, o.Workspace, o.Bias, o.Out, o.Scratch)
		}
	case kindConv2DWinogradFilter:
		if phase == 0 {
			winogradTileSums(&p.gradient, tile, o)
		} else {
			winogradCombine(&p.gradient, tile, o)
		}
	default:
		lo, hi := splitRange(p.Rows, p.pool.tiles, tile)
		poolPlanes(p, lo, hi, o)
	}
}

// RunRows computes some rows of the last phase or, for a filter's gradient, of the first. The
// operands hold only these rows: a multiple of Unit, or fewer at the end of a part. For a filter's
// gradient, Workspace is the partial sum of the part, to which Add adds. The bits are those of
// [Run].
func RunRows[T Float](p *Routine, rows int, o Operands[T]) {
	if rows < 1 || rows > p.Rows {
		panic(errors.Errorf("kernel: run: rows must be in [1, %d], got %d", p.Rows, rows))
	}
	a, b, out, workspace := p.sizeA/p.Rows*rows, p.sizeB, p.sizeOut, p.Workspace
	if p.rowsOfB() {
		b = b / p.Rows * rows
	}
	if p.Parts == nil {
		out = out / p.Rows * rows
	} else {
		workspace /= len(p.Parts) - 1
	}
	p.checkSizes(a, b, p.sizeBias, out, len(o.A), len(o.B), len(o.Bias), len(o.Out))
	p.checkMemory(workspace, p.Scratch, len(o.Workspace), len(o.Scratch))
	switch p.kind {
	case kindConv2DBackwardFilter:
		for i := range p.conv.filter.ranges {
			filterSums(&p.conv, 0, ceilDiv(rows, p.Unit), rows, i, o.Workspace, o)
		}
	case kindConv2DLines:
		for i := range p.lines.ranges {
			linesSums(&p.lines, 0, ceilDiv(rows, p.Unit), rows, i, o.Workspace, o)
		}
	case kindConv2DWinogradFilter:
		for i := range p.gradient.ranges {
			winogradSums(&p.gradient, 0, ceilDiv(rows, p.Unit), rows, i, o.Workspace, o)
		}
	case kindConv2DForward, kindConv2DBackwardInput, kindConv2DScatter, kindConv2DWinograd:
		last := len(p.Phases) - 1
		tiles := p.Phases[last] / ceilDiv(p.Rows, p.Unit) // of a unit
		for tile := range ceilDiv(rows, p.Unit) * tiles {
			runTile(p, last, tile, rows, o)
		}
	default:
		poolPlanes(p, 0, rows, o)
	}
}

// rowsOfB reports whether B consists of rows, as A does.
func (p *Routine) rowsOfB() bool { return p.Parts != nil || p.kind >= kindMaxPoolForward }

// check panics if a tile or a length does not match the routine. The assembly checks nothing, so it
// must not be reached with wrong sizes.
func (p *Routine) check(phase, tile, a, b, bias, out, workspace, scratch int) {
	if phase < 0 || phase >= len(p.Phases) || tile < 0 || tile >= p.Phases[phase] {
		panic(errors.Errorf("kernel: run: phases have %v tiles, got tile %d of phase %d", p.Phases, tile, phase))
	}
	p.checkSizes(p.sizeA, p.sizeB, p.sizeBias, p.sizeOut, a, b, bias, out)
	p.checkMemory(p.Workspace, p.Scratch, workspace, scratch)
}

func (p *Routine) checkSizes(wantA, wantB, wantBias, wantOut, a, b, bias, out int) {
	if a != wantA || b != wantB || bias != wantBias || out != wantOut {
		panic(errors.Errorf("kernel: run: A, B, Bias, Out must have %d, %d, %d, %d elements, got %d, %d, %d, %d",
			wantA, wantB, wantBias, wantOut, a, b, bias, out))
	}
}

func (p *Routine) checkMemory(wantWorkspace, wantScratch, workspace, scratch int) {
	if workspace < wantWorkspace || scratch < wantScratch {
		panic(errors.Errorf("kernel: run: Workspace and Scratch must have at least %d and %d elements, got %d and %d",
			wantWorkspace, wantScratch, workspace, scratch))
	}
}

// splitRange returns the bounds of part i when total is divided into n parts as evenly as possible:
// 10 in 3 parts is [0, 3), [3, 6), [6, 10).
func splitRange(total, n, i int) (lo, hi int) {
	return i * total / n, (i + 1) * total / n
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// maxElements bounds the size of every tensor, so that offsets fit in tables of int32.
const maxElements = 1<<31 - 1

// product multiplies sizes and reports whether the result is at most maxElements.
func product(sizes ...int) (int, bool) {
	n := 1
	for _, s := range sizes {
		if s < 0 || s > 0 && n > maxElements/s {
			return 0, false
		}
		n *= s
	}
	return n, true
}
