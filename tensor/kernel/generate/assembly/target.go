package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// target is an instruction set.
type target struct {
	suffix string // of the functions' names
	lanes  int    // float32 in a register
	new    func() VecVirtual
	rows   int // of the highest tile of sums
	table  int // the same, where the left factor is given by tables
}

// AVX2 has sixteen registers, of which six rows of two fill twelve; AVX-512 has thirty-two. There, each multiply-add reads its scalar itself,
// and the fifteen loads of fourteen rows take a little more than the seven cycles of two units that multiply and add. The addresses of more than
// ten rows do not fit into the registers.
var (
	avx2   = target{"AVX2", 8, func() VecVirtual { return YMM() }, 6, 6}
	avx512 = target{"AVX512", 16, func() VecVirtual { return ZMM() }, 14, 10}
)

func (t target) zero() VecVirtual {
	v := t.new()
	VXORPS(v, v, v)
	return v
}

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

// Comparisons, as the instructions encode them.
const (
	less     = 1
	notEqual = 4
)

// where is v in those places where a compares so with b, and 0 elsewhere.
func (t target) where(comparison uint64, a VecVirtual, b, v Op) VecVirtual {
	result := t.new()
	if t.lanes == vector {
		VCMPPS(Imm(comparison), b, a, result)
		VANDPS(v, result, result)
		return result
	}
	mask := K()
	VCMPPS(Imm(comparison), b, a, mask)
	VMOVUPS_Z(v, mask, result)
	return result
}
