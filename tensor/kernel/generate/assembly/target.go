package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// target is the instruction set that passes are written for.
type target struct {
	suffix string // of the functions' names
	lanes  int    // float32 in a register
	new    func() VecVirtual
}

var avx2 = target{"AVX2", 8, func() VecVirtual { return YMM() }}

// Results in new registers. Each is one correctly rounded operation, so that portable Go gives the same bits.

func (t target) multiply(a VecVirtual, b Op) VecVirtual {
	v := t.new()
	VMULPS(b, a, v)
	return v
}

func (t target) add(a VecVirtual, b Op) VecVirtual {
	v := t.new()
	VADDPS(b, a, v)
	return v
}

// subtract is a - b.
func (t target) subtract(a VecVirtual, b Op) VecVirtual {
	v := t.new()
	VSUBPS(b, a, v)
	return v
}

// divide is a / b.
func (t target) divide(a VecVirtual, b Op) VecVirtual {
	v := t.new()
	VDIVPS(b, a, v)
	return v
}

func (t target) root(a Op) VecVirtual {
	v := t.new()
	VSQRTPS(a, v)
	return v
}
