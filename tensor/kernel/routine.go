package kernel

import (
	"github.com/pkg/errors"
)

// Float is the type of a tensor's elements: float32 to train, float64 for
// oracles.
type Float interface{ ~float32 | ~float64 }

// Routine is a description made ready to run: its phases, the memory it needs and its tables. It is
// read-only after it was made; any number of goroutines may share it.
type Routine struct {
	Phases     []int // the number of tiles of each phase
	Workspace  int   // elements shared by all tiles of a call, undefined at first, kept from phase to phase
	Scratch    int   // elements private to one worker, undefined before every tile
	Rows, Unit int   // of A, Out and poolings' B, or of A and B of a filter's gradient; 0 if RunRows knows none
	Parts      []int // of a filter's gradient: the first row of each sum, and the end

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

// Winograd reports whether the plan is a convolution that multiplies transformed patches, with
// fewer operations than the definition.
func (p *Routine) Winograd() bool {
	return p.kind == kindConv2DWinograd || p.kind == kindConv2DWinogradFilter
}

// Operands are the slices of one call. The method that makes the plan ([Gemm.Plan],
// [Conv2D.Forward] and so on) says what A, B and Out are, whose lengths must be the tensors'. Bias
// is for plans that ask for one. Workspace and Scratch may be longer than the plan asks. Out must
// not overlap any other slice.
type Operands[T Float] struct {
	A, B, Bias, Out    []T
	Workspace, Scratch []T
	Add                bool // RunRows adds to the sums in Workspace
}

// Run performs one tile of one phase. It panics when the tile or a slice's length is not one of the
// plan's. Tiles that run at the same time share all operands but Scratch.
func Run[T Float](p *Routine, phase, tile int, o Operands[T]) {
	p.check(phase, tile, len(o.A), len(o.B), len(o.Bias), len(o.Out), len(o.Workspace), len(o.Scratch))
	runTile(p, phase, tile, p.Rows, o)
}

// runTile performs a tile of a phase, on as many rows as there are if it keeps to rows.
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

// RunRows performs the last phase or, of a filter's gradient, the first for rows, whole units or a
// part's last ones, to which the operands are cut, and Workspace to the part's sums.
func RunRows[T Float](p *Routine, rows int, o Operands[T]) {
	if rows < 1 || rows > p.Rows {
		panic(errors.Errorf("kernel: run: %d rows of a plan of %d", rows, p.Rows))
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

// rowsOfB reports whether B is rows, as A is.
func (p *Routine) rowsOfB() bool { return p.Parts != nil || p.kind >= kindMaxPoolForward }

// check panics when a tile or a length is not one of the plan's: the caller's sizes are then
// broken, and the assembly must not be reached.
func (p *Routine) check(phase, tile, a, b, bias, out, workspace, scratch int) {
	if phase < 0 || phase >= len(p.Phases) || tile < 0 || tile >= p.Phases[phase] {
		panic(errors.Errorf("kernel: run: no tile %d of phase %d in a plan of phases %v", tile, phase, p.Phases))
	}
	p.checkSizes(p.sizeA, p.sizeB, p.sizeBias, p.sizeOut, a, b, bias, out)
	p.checkMemory(p.Workspace, p.Scratch, workspace, scratch)
}

func (p *Routine) checkSizes(wantA, wantB, wantBias, wantOut, a, b, bias, out int) {
	if a != wantA || b != wantB || bias != wantBias || out != wantOut {
		panic(errors.Errorf("kernel: run: operands A, B, Bias, Out have %d, %d, %d, %d elements, want %d, %d, %d, %d",
			a, b, bias, out, wantA, wantB, wantBias, wantOut))
	}
}

func (p *Routine) checkMemory(wantWorkspace, wantScratch, workspace, scratch int) {
	if workspace < wantWorkspace || scratch < wantScratch {
		panic(errors.Errorf("kernel: run: workspace and scratch have %d and %d elements, want at least %d and %d",
			workspace, scratch, wantWorkspace, wantScratch))
	}
}

// cut returns the bounds of part i of n when total things are divided as
// evenly as possible.
func splitRange(total, n, i int) (lo, hi int) {
	return i * total / n, (i + 1) * total / n
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// maxElements bounds every tensor, so that offsets fit in an int32 table.
const maxElements = 1<<31 - 1

// product multiplies sizes and reports whether the result is at most
// maxElements.
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
