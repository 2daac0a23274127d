package assembly

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// wide selects AVX-512. A set is then all eight quads of a group; otherwise it is four of them.
var wide bool

// by returns the argument for the instruction set in use.
func by[T any](avx2, avx512 T) T {
	if wide {
		return avx512
	}
	return avx2
}

func vectorSize() int { return by(32, 64) }
func quadsASet() int  { return vectorSize() / 8 }
func bytesASet() int  { return quadsASet() * bytesAQuad }

func vector() VecVirtual { return by(YMM, ZMM)() }

// Instructions whose AVX-512 forms have another name or broadcast a word, which all lanes share,
// from memory.
var (
	load       = func(ops ...Op) { by(of2(VMOVDQU), VMOVDQU32)(ops...) }
	loadWord   = func(ops ...Op) { by(of2(VMOVDQU), VPBROADCASTD)(ops...) }
	xor        = func(ops ...Op) { by(of3(VPXOR), VPXORD)(ops...) }
	xorWord    = func(ops ...Op) { by(of3(VPXOR), VPXORD_BCST)(ops...) }
	or         = func(ops ...Op) { by(of3(VPOR), VPORD)(ops...) }
	orWord     = func(ops ...Op) { by(of3(VPOR), VPORD_BCST)(ops...) }
	andWord    = func(ops ...Op) { by(of3(VPAND), VPANDD_BCST)(ops...) }
	andNot     = func(ops ...Op) { by(of3(VPANDN), VPANDND)(ops...) }
	addWord    = func(ops ...Op) { by(VPADDD, VPADDD_BCST)(ops...) }
	times      = func(ops ...Op) { by(VPMULUDQ, VPMULUDQ_BCST)(ops...) }
	andFloat   = func(ops ...Op) { by(VANDPS, VANDPS_BCST)(ops...) }
	orFloat    = func(ops ...Op) { by(VORPS, VORPS_BCST)(ops...) }
	addFloat   = func(ops ...Op) { by(VADDPS, VADDPS_BCST)(ops...) }
	timesFloat = func(ops ...Op) { by(VMULPS, VMULPS_BCST)(ops...) }
)

func of2(instruction func(a, b Op)) func(...Op) {
	return func(ops ...Op) { instruction(ops[0], ops[1]) }
}

func of3(instruction func(a, b, c Op)) func(...Op) {
	return func(ops ...Op) { instruction(ops[0], ops[1], ops[2]) }
}

// store writes a value that all quads share to a new place on the stack: the whole vector or, in
// AVX-512, a single word, which instructions broadcast.
func store(from VecVirtual) Mem {
	if wide {
		m := AllocLocal(8)
		VMOVD(from.AsX(), m)
		return m
	}
	m := AllocLocal(vectorSize())
	VMOVDQU(from, m)
	return m
}

// broadcastParam broadcasts a 32-bit parameter to all lanes.
func broadcastParam(name string, to VecVirtual) {
	word, lane := GP32(), XMM()
	Load(Param(name), word)
	VMOVD(word, lane)
	VPBROADCASTD(lane, to)
}

func constantFloat(name string, value float32) Mem {
	return constant(name, math.Float32bits(value))
}

var constants = map[uint32]Mem{}

// constant returns the address of a vector with the value in each 32-bit lane or, in AVX-512, of
// two lanes, which instructions broadcast. Equal values share one constant, named by the first use.
func constant(name string, value uint32) Mem {
	if m, ok := constants[value]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("%s_%08x%s", name, value, by("", "_512")), attr.RODATA|attr.NOPTR)
	for lane := range by(vectorSize()/4, 2) {
		DATA(4*lane, U32(value))
	}
	constants[value] = m
	return m
}

// offsets holds the number of the quad in each lane, relative to the first quad of a set.
var offsets Mem

func quadOffsets() Mem {
	if offsets.Symbol.Name == "" {
		offsets = GLOBL("quadOffsets"+by("", "_512"), attr.RODATA|attr.NOPTR)
		for lane, quad := range by([]uint64{0, 2, 1, 3}, []uint64{0, 4, 1, 5, 2, 6, 3, 7}) {
			DATA(8*lane, U64(quad))
		}
	}
	return offsets
}
