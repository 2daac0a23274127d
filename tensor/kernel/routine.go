package kernel

import "github.com/pkg/errors"

// Float constrains tensor elements: float32 for training, float64 for reference computations.
type Float interface{ ~float32 | ~float64 }

// Routine is a description prepared to run: its phases, memory requirements and tables. It is
// immutable, so any number of goroutines may share it.
//
// Rows and Parts let package tensor fuse a routine with its neighbours (see [RunRows]).
type Routine struct {
	Phases    []int // the number of tiles of each phase
	Workspace int   // elements shared by all tiles of a call; undefined at first, kept between phases
	Scratch   int   // elements private to one worker; undefined before every tile
	// Preparation is the number of phases at the start that read only B and write only Workspace,
	// which later phases do not change. They may be left out while B is unchanged.
	Preparation int
	// Rows is the number of rows of A and Out, and of B in pooling; of A and B in a filter's
	// gradient. It is 0 if RunRows does not apply. RunRows takes multiples of Unit rows.
	Rows, Unit int
	Parts      []int // of a filter's gradient: the first row of each partial sum, and the end
	Planes     Planes

	kind                            kind
	plan                            any // see kind
	sizeA, sizeB, sizeBias, sizeOut int
}

// Planes describes the planes of an image's output that [RunPlanes] computes. Each plane needs all
// planes of the input or, if OneToOne is set, only the one with the same number.
type Planes struct {
	Count    int // planes of an image's output; 0 if RunPlanes does not apply
	OneToOne bool
}

// kind is the algorithm of a routine, which determines the type of its plan and the functions that
// [Run] calls with it: a pointer to gemmPlan, convPlan (the direct convolutions), channelsPlan,
// scatterPlan, linesPlan, winogradPlan, winogradGradient, tapsPlan, tapsFilterPlan, groupsPlan or
// poolPlan.
type kind uint8

const (
	kindGemm kind = iota + 1
	kindConv2DForward
	kindConv2DChannels
	kindConv2DBackwardInput
	kindConv2DScatter
	kindConv2DBackwardFilter
	kindConv2DLines
	kindConv2DWinograd
	kindConv2DWinogradFilter
	kindTaps
	kindTapsFilter
	kindGroups
	kindGroupsFilter
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
// [Conv2D.Forward] and others) documents A, B and Out. Their lengths must match the tensors. Bias
// is used only by routines that ask for one. Workspace and Scratch may be longer than the routine
// requires. Out must not overlap any other slice.
type Operands[T Float] struct {
	A, B, Bias, Out    []T
	Workspace, Scratch []T
	Add                bool // RunRows adds to the sums in Workspace
}

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

// fits reports whether the product of sizes is at most maxElements.
func fits(sizes ...int) bool {
	n := 1
	for _, s := range sizes {
		if s < 0 || s > 0 && n > maxElements/s {
			return false
		}
		n *= s
	}
	return true
}

// withoutParts returns the routine with Rows cleared if it has no parts, which means that some
// chunks start within an image.
func (p Routine) withoutParts() Routine {
	if p.Parts == nil {
		p.Rows, p.Unit = 0, 0
	}
	return p
}
