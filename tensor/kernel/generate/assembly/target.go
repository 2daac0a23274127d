package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

// target is an instruction set.
type target struct {
	suffix string // suffix of function names
	lanes  int    // float32 per register
	new    func() VecVirtual
	rows   int // rows of the largest register tile
	table  int // the same, with a left factor given by tables
}

// AVX2 has sixteen registers, and six rows of two fill twelve; AVX-512 has thirty-two. In AVX-512
// each multiply-add broadcasts its scalar from memory, and the fifteen loads of fourteen rows take
// a little longer than the seven cycles that the two FMA units need. With a left factor given by
// tables, the addresses of more than ten rows do not fit into the registers.
var (
	avx2   = target{"AVX2", 8, func() VecVirtual { return YMM() }, 6, 6}
	avx512 = target{"AVX512", 16, func() VecVirtual { return ZMM() }, 14, 10}
)

func (t target) zero() VecVirtual {
	v := t.new()
	VXORPS(v, v, v)
	return v
}
