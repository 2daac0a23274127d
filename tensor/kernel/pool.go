package kernel

import "github.com/pkg/errors"

// Pool2D describes pooling over windows of R x S elements: x [B C H W] -> y [B C P Q]. Windows that
// reach beyond the padding at the lower and right edges are dropped. Padding is never the maximum
// and is not counted in an average.
type Pool2D struct {
	B, C, H, W       int
	R, S             int
	StrideH, StrideW int
	PadH, PadW       int
	TrailH, TrailW   int // padding at the lower and right edges in addition to PadH and PadW; may be negative, but not their sum
	// ReLU, for max pooling only, applies a ReLU to the maxima. The backward direction includes its
	// gradient.
	ReLU bool
}

// P returns the height of the output, 0 if the window does not fit once.
func (p Pool2D) P() int { return outputSize(p.H+p.TrailH, p.R, p.StrideH, p.PadH, 1) }

// Q returns the width of the output, 0 if the window does not fit once.
func (p Pool2D) Q() int { return outputSize(p.W+p.TrailW, p.S, p.StrideW, p.PadW, 1) }

// Validate returns an error for sizes and strides below 1, a padding that is negative or so large
// that a window would be empty, a window larger than the padded image, and tensors of 2^31 elements
// or more.
func (p Pool2D) Validate() error {
	if min(p.B, p.C, p.H, p.W, p.R, p.S) < 1 {
		return errors.Errorf("kernel: pool2d: B, C, H, W, R, S must be at least 1, got %d, %d, %d, %d, %d, %d",
			p.B, p.C, p.H, p.W, p.R, p.S)
	}
	if min(p.StrideH, p.StrideW) < 1 || min(p.PadH, p.PadW) < 0 || p.PadH >= p.R || p.PadW >= p.S {
		return errors.Errorf("kernel: pool2d: stride must be at least 1, and padding at least 0 and less than the window of %d x %d, got %d x %d and %d x %d",
			p.R, p.S, p.StrideH, p.StrideW, p.PadH, p.PadW)
	}
	if max(p.StrideH, p.StrideW, p.R, p.S) > 1<<20 {
		return errors.Errorf("kernel: pool2d: window sizes and strides must be at most %d", 1<<20)
	}
	if p.PadH+p.TrailH < 0 || p.PadW+p.TrailW < 0 {
		return errors.Errorf("kernel: pool2d: padding at the end must be at least 0, got %d x %d", p.PadH+p.TrailH, p.PadW+p.TrailW)
	}
	if (p.P()-1)*p.StrideH-p.PadH >= p.H || (p.Q()-1)*p.StrideW-p.PadW >= p.W {
		return errors.Errorf("kernel: pool2d: trailing padding of %d x %d leaves the last windows of %d x %d empty in an image of %d x %d",
			p.TrailH, p.TrailW, p.R, p.S, p.H, p.W)
	}
	if p.P() < 1 || p.Q() < 1 {
		return errors.Errorf("kernel: pool2d: a window of %d x %d does not fit into an image of %d x %d with padding %d x %d",
			p.R, p.S, p.H, p.W, p.PadH, p.PadW)
	}
	for _, s := range [][]int{{p.B, p.C, p.H, p.W}, {p.B, p.C, p.P(), p.Q()}} {
		if !fits(s...) {
			return errors.Errorf("kernel: pool2d: a tensor must have at most %d elements, got shape %v", maxElements, s)
		}
	}
	return nil
}

// poolPlan divides the B x C planes into tiles.
type poolPlan struct {
	Pool2D
	outH, outW int
	tiles      int
	table      []int32  // argument of maxPlanes, nil if it does not apply
	masks      []uint16 // argument of maxLineFast and placeLineFast, nil if they do not apply
}

// poolTileElements is the minimum number of input elements of a tile where there is a choice.
const poolTileElements = 1 << 14

// MaxForward prepares y = maximum of each window. Operands: A is x, Out is y. The maximum of a
// window that contains a NaN is NaN. A maximum of zero is positive.
func (p Pool2D) MaxForward() (Routine, error) { return p.plan(kindMaxPoolForward) }

// MaxBackward prepares the gradient of MaxForward. Operands: A is dout [B C P Q], B is x, Out is
// dx. A window's gradient goes to its first maximum, row by row; in a window with a NaN it goes to
// some element. With ReLU, dx is 0 unless x is above 0.
func (p Pool2D) MaxBackward() (Routine, error) { return p.plan(kindMaxPoolBackward) }

// AverageForward prepares y = mean of the elements of each window. Operands: A is x, Out is y.
func (p Pool2D) AverageForward() (Routine, error) { return p.plan(kindAveragePoolForward) }

// AverageBackward prepares the gradient of AverageForward. Operands: A is dout [B C P Q], Out is
// dx.
func (p Pool2D) AverageBackward() (Routine, error) { return p.plan(kindAveragePoolBackward) }

// plan returns the routine of a kind: the sizes of its operands, and its division into tiles of
// whole planes.
func (p Pool2D) plan(k kind) (Routine, error) {
	if err := p.Validate(); err != nil {
		return Routine{}, err
	}
	planes := p.B * p.C
	// A plane, one channel of one image, is the unit of work: windows never cross planes.
	each := min(planes, ceilDiv(poolTileElements, p.H*p.W))
	pool := poolPlan{Pool2D: p, outH: p.P(), outW: p.Q(), tiles: ceilDiv(planes, each)}
	if pool.simple() {
		pool.table = pairSegments(p.W, pool.outH, pool.outW)
	}
	if p.S == 3 && p.StrideW == 2 && p.R <= noPlace/4 {
		pool.masks = columnMasks(p.S, p.StrideW, p.PadW, p.W, pool.outW)
	}
	x, y := planes*p.H*p.W, planes*pool.outH*pool.outW
	plan := Routine{Phases: []int{pool.tiles}, Rows: planes, Unit: 1, kind: k, plan: &pool}
	switch k {
	case kindMaxPoolForward, kindAveragePoolForward:
		plan.sizeA, plan.sizeOut = x, y
	case kindMaxPoolBackward:
		plan.sizeA, plan.sizeB, plan.sizeOut = y, x, x
	case kindAveragePoolBackward:
		plan.sizeA, plan.sizeOut = y, x
	}
	return plan, nil
}

// bounds returns the elements [lo, hi) of an axis that window i covers.
func bounds(i, stride, pad, taps, size int) (lo, hi int) {
	lo = i*stride - pad
	return max(lo, 0), min(lo+taps, size)
}

// simple reports whether the windows are 2 x 2, adjacent and unpadded.
func (p *poolPlan) simple() bool {
	return p.R == 2 && p.S == 2 && p.StrideH == 2 && p.StrideW == 2 && p.PadH == 0 && p.PadW == 0 && 2*p.outH <= p.H && 2*p.outW <= p.W
}
