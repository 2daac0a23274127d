package kernel

import "github.com/pkg/errors"

// Pool2D describes pooling over windows of R x S elements:
// x [B C H W] -> y [B C P Q]. Windows that the stride leaves incomplete at the end
// are left out. The padding is never the maximum, nor counted in an average.
type Pool2D struct {
	B, C, H, W       int
	R, S             int
	StrideH, StrideW int
	PadH, PadW       int
	ReLU             bool // of maxima: raises them to 0, or is the gradient of one before them
}

// P is the height of the output, 0 when the window does not fit once.
func (p Pool2D) P() int { return outputSize(p.H, p.R, p.StrideH, p.PadH, 1) }

// Q is the width of the output, 0 when the window does not fit once.
func (p Pool2D) Q() int { return outputSize(p.W, p.S, p.StrideW, p.PadW, 1) }

// Validate refuses sizes and strides below 1, a padding below 0 or as large as the window, which
// could be empty then, a window larger than the padded image, and tensors of 2^31 elements or more.
func (p Pool2D) Validate() error {
	if min(p.B, p.C, p.H, p.W, p.R, p.S) < 1 {
		return errors.Errorf("kernel: pool2d: sizes B, C, H, W, R, S are %d, %d, %d, %d, %d, %d, want at least 1",
			p.B, p.C, p.H, p.W, p.R, p.S)
	}
	if min(p.StrideH, p.StrideW) < 1 || min(p.PadH, p.PadW) < 0 || p.PadH >= p.R || p.PadW >= p.S {
		return errors.Errorf("kernel: pool2d: stride %d x %d, padding %d x %d, want at least 1, and 0 or more but less than the window of %d x %d",
			p.StrideH, p.StrideW, p.PadH, p.PadW, p.R, p.S)
	}
	if max(p.StrideH, p.StrideW, p.R, p.S) > 1<<20 {
		return errors.Errorf("kernel: pool2d: a window size or stride exceeds %d", 1<<20)
	}
	if p.P() < 1 || p.Q() < 1 {
		return errors.Errorf("kernel: pool2d: a window of %d x %d does not fit into an image of %d x %d with padding %d x %d",
			p.R, p.S, p.H, p.W, p.PadH, p.PadW)
	}
	for _, s := range [][]int{{p.B, p.C, p.H, p.W}, {p.B, p.C, p.P(), p.Q()}} {
		if _, ok := product(s...); !ok {
			return errors.Errorf("kernel: pool2d: a tensor of shape %v has more than %d elements", s, maxElements)
		}
	}
	return nil
}

// poolPlan cuts the planes B x C into tiles.
type poolPlan struct {
	Pool2D
	outH, outW int
	tiles      int
	table      []int32 // of maxPlanes
}

// poolTileElements is the least number of input elements of a tile where there
// is a choice.
const poolTileElements = 1 << 14

// MaxForward makes y = maximum of each window ready. Operands: A is x, Out is y.
// The maximum of a window that holds a NaN is NaN.
func (p Pool2D) MaxForward() (Routine, error) { return p.plan(kindMaxPoolForward) }

// MaxBackward makes the gradient of MaxForward ready. Operands: A is dout [B C P Q], B is x, Out
// is dx. A window's goes to its first maximum, row by row, or, from NaN, to some element. With
// ReLU, dx is 0 unless x is above 0.
func (p Pool2D) MaxBackward() (Routine, error) { return p.plan(kindMaxPoolBackward) }

// AverageForward makes y = mean of the elements in each window ready. Operands:
// A is x, Out is y.
func (p Pool2D) AverageForward() (Routine, error) { return p.plan(kindAveragePoolForward) }

// AverageBackward makes the gradient of AverageForward ready. Operands: A is
// dout [B C P Q], Out is dx.
func (p Pool2D) AverageBackward() (Routine, error) { return p.plan(kindAveragePoolBackward) }

func (p Pool2D) plan(k kind) (Routine, error) {
	if err := p.Validate(); err != nil {
		return Routine{}, err
	}
	planes := p.B * p.C
	each := min(planes, ceilDiv(poolTileElements, p.H*p.W))
	pool := poolPlan{Pool2D: p, outH: p.P(), outW: p.Q(), tiles: ceilDiv(planes, each)}
	if pool.simple() {
		pool.table = pairSegments(p.W, pool.outH, pool.outW)
	}
	x, y := planes*p.H*p.W, planes*pool.outH*pool.outW
	plan := Routine{Phases: []int{pool.tiles}, Rows: planes, Unit: 1, kind: k, pool: pool}
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

// poolPlanes computes planes [lo, hi) of a pooling.
func poolPlanes[T Float](p *Routine, lo, hi int, o Operands[T]) {
	switch p.kind {
	case kindMaxPoolForward:
		maxPoolForward(&p.pool, lo, hi, o.A, o.Out)
	case kindMaxPoolBackward:
		maxPoolBackward(&p.pool, lo, hi, o.A, o.B, o.Out)
	case kindAveragePoolForward:
		averagePoolForward(&p.pool, lo, hi, o.A, o.Out)
	case kindAveragePoolBackward:
		averagePoolBackward(&p.pool, lo, hi, o.A, o.Out)
	}
}

// bounds returns the elements [lo, hi) of an axis that window i covers.
func bounds(i, stride, pad, taps, size int) (lo, hi int) {
	lo = i*stride - pad
	return max(lo, 0), min(lo+taps, size)
}

// simple reports whether the windows are 2 x 2, adjacent and unpadded.
func (p *poolPlan) simple() bool {
	return p.R == 2 && p.S == 2 && p.StrideH == 2 && p.StrideW == 2 && p.PadH == 0 && p.PadW == 0
}
