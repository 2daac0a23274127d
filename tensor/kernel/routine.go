package kernel

import (
	"github.com/pkg/errors"
)

// Float is the type of a tensor's elements: float32 to train, float64 for
// oracles.
type Float interface{ ~float32 | ~float64 }

// Routine is a description made ready to run: its phases, the memory it needs and
// its tables. It is read-only after it was made and may be shared by any number
// of goroutines.
type Routine struct {
	// Phases holds the number of tiles of each phase, in order.
	Phases []int
	// Workspace is the number of elements shared by all tiles of a call. Their contents are
	// undefined before the first phase and must be kept until the last phase has ended.
	Workspace int
	// Scratch is the number of elements private to one worker, undefined before every tile.
	Scratch int

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
// [Conv2D.Forward] and so on) says what A, B and Out are; their lengths must be exactly the
// tensors'. Bias is used only by plans that ask for one. Workspace and Scratch may be longer than
// the plan asks. Out must not overlap any other slice.
type Operands[T Float] struct {
	A, B, Bias, Out    []T
	Workspace, Scratch []T
}

// Run performs one tile of one phase. It panics when the tile or a slice's length is not one of the
// plan's: the caller's sizes are then broken, and the assembly must not be reached. Tiles that run
// at the same time share all operands but Scratch.
func Run[T Float](p *Routine, phase, tile int, o Operands[T]) {
	if phase < 0 || phase >= len(p.Phases) || tile < 0 || tile >= p.Phases[phase] {
		panic(errors.Errorf("kernel: run: no tile %d of phase %d in a plan of phases %v", tile, phase, p.Phases))
	}
	if len(o.A) != p.sizeA || len(o.B) != p.sizeB || len(o.Bias) != p.sizeBias || len(o.Out) != p.sizeOut {
		panic(errors.Errorf("kernel: run: operands A, B, Bias, Out have %d, %d, %d, %d elements, want %d, %d, %d, %d",
			len(o.A), len(o.B), len(o.Bias), len(o.Out), p.sizeA, p.sizeB, p.sizeBias, p.sizeOut))
	}
	if len(o.Workspace) < p.Workspace || len(o.Scratch) < p.Scratch {
		panic(errors.Errorf("kernel: run: workspace and scratch have %d and %d elements, want at least %d and %d",
			len(o.Workspace), len(o.Scratch), p.Workspace, p.Scratch))
	}
	switch p.kind {
	case kindGemm:
		gemmRun(&p.gemm, phase, tile, o)
	case kindConv2DForward:
		convTile(&p.conv, tile, o.A, o.B, o.Bias, o.Out, o.Scratch)
	case kindConv2DBackwardInput:
		if phase == 0 {
			flipFilter(&p.conv, tile, o.B, o.Workspace)
		} else {
			convTile(&p.conv, tile, o.A, o.Workspace, nil, o.Out, o.Scratch)
		}
	case kindConv2DScatter:
		if phase == 0 {
			packFilter(&p.scatter, tile, o.B, o.Workspace)
		} else {
			scatterTile(&p.scatter, tile, o)
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
			winogradTile(&p.winograd, tile, o.A, o.Workspace, o.Bias, o.Out, o.Scratch)
		}
	case kindConv2DWinogradFilter:
		if phase == 0 {
			winogradSums(&p.gradient, tile, o)
		} else {
			winogradCombine(&p.gradient, tile, o)
		}
	case kindMaxPoolForward:
		maxPoolForward(&p.pool, tile, o.A, o.Out)
	case kindMaxPoolBackward:
		maxPoolBackward(&p.pool, tile, o.A, o.B, o.Bias, o.Out)
	case kindAveragePoolForward:
		averagePoolForward(&p.pool, tile, o.A, o.Out)
	case kindAveragePoolBackward:
		averagePoolBackward(&p.pool, tile, o.A, o.Out)
	}
}

// cut returns the bounds of part i of n when total things are divided as
// evenly as possible.
func cut(total, n, i int) (lo, hi int) {
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
