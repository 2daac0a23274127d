package assembly

import (
	. "github.com/mmcloughlin/avo/build"
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

// AVX2 has sixteen registers, of which six rows of two fill twelve; AVX-512 has thirty-two. There,
// each multiply-add reads its scalar itself, and the fifteen loads of fourteen rows take a little
// more than the seven cycles of two units that multiply and add. The addresses of more than ten
// rows do not fit into the registers.
var (
	avx2   = target{"AVX2", 8, func() VecVirtual { return YMM() }, 6, 6}
	avx512 = target{"AVX512", 16, func() VecVirtual { return ZMM() }, 14, 10}
)

func (t target) zero() VecVirtual {
	v := t.new()
	VXORPS(v, v, v)
	return v
}
