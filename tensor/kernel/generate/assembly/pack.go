package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// windowRuns packs a panel of patches in which each half is two runs: two loads
// and a blend for each vector.
func windowRuns() {
	masks := GLOBL("splitMasks", RODATA|NOPTR)
	for i := range 2 * vector {
		value := uint32(0)
		if i < vector {
			value = 1<<32 - 1
		}
		DATA(i*bytes, U32(value))
	}
	TEXT("windowRuns", NOSPLIT, "func(panel, padded *float32, halves *[6]int32, taps *int32, depth int)")
	Pragma("noescape")
	Doc("windowRuns is packWindow for a panel of runs.")
	panel := Load(Param("panel"), GP64())
	padded := Load(Param("padded"), GP64())
	halves := Load(Param("halves"), GP64())
	var first, second [2]GPVirtual
	var mask [2]VecVirtual
	table := GP64()
	LEAQ(masks, table)
	for h := range 2 {
		first[h], second[h], mask[h] = GP64(), GP64(), YMM()
		for i, pointer := range []GPVirtual{first[h], second[h]} {
			MOVLQSX(Mem{Base: halves, Disp: (3*h + i) * bytes}, pointer)
			LEAQ(Mem{Base: padded, Index: pointer, Scale: bytes}, pointer)
		}
		split, at := GP64(), GP64()
		MOVLQSX(Mem{Base: halves, Disp: (3*h + 2) * bytes}, split)
		SHLQ(Imm(2), split)
		MOVQ(table, at)
		SUBQ(split, at)
		VMOVUPS(Mem{Base: at, Disp: vector * bytes}, mask[h])
	}
	taps := Load(Param("taps"), GP64())
	depth := Load(Param("depth"), GP64())

	step := func(n int) {
		tap := GP64()
		MOVLQSX(Mem{Base: taps, Disp: n * bytes}, tap)
		for h := range 2 {
			v := YMM()
			VMOVUPS(Mem{Base: second[h], Index: tap, Scale: bytes}, v)
			VBLENDVPS(mask[h], Mem{Base: first[h], Index: tap, Scale: bytes}, v, v)
			VMOVUPS(v, Mem{Base: panel, Disp: (n*panelColumns + h*vector) * bytes})
		}
	}
	Label("pairs")
	SUBQ(Imm(2), depth)
	JL(LabelRef("last"))
	step(0)
	step(1)
	ADDQ(Imm(2*bytes), taps)
	ADDQ(Imm(2*panelColumns*bytes), panel)
	JMP(LabelRef("pairs"))
	Label("last")
	ADDQ(Imm(2), depth)
	JZ(LabelRef("end"))
	step(0)
	Label("end")
	VZEROUPPER()
	RET()
}

// windowGather packs any panel of patches by gathering its elements.
func windowGather() {
	TEXT("windowGather", NOSPLIT, "func(panel, padded *float32, pixels *[16]int32, taps *int32, depth int)")
	Pragma("noescape")
	Doc("windowGather is packWindow for any panel.")
	panel := Load(Param("panel"), GP64())
	padded := Load(Param("padded"), GP64())
	pixels := Load(Param("pixels"), GP64())
	var index [2]VecVirtual
	for h := range index {
		index[h] = YMM()
		VMOVDQU(Mem{Base: pixels, Disp: h * vector * bytes}, index[h])
	}
	taps := Load(Param("taps"), GP64())
	depth := Load(Param("depth"), GP64())
	Label("loop")
	TESTQ(depth, depth)
	JZ(LabelRef("end"))
	base := GP64()
	MOVLQSX(Mem{Base: taps}, base)
	LEAQ(Mem{Base: padded, Index: base, Scale: bytes}, base)
	for h := range index {
		mask, v := YMM(), YMM()
		VPCMPEQD(mask, mask, mask)
		VXORPS(v, v, v)
		VGATHERDPS(mask, Mem{Base: base, Index: index[h], Scale: bytes}, v)
		VMOVUPS(v, Mem{Base: panel, Disp: h * vector * bytes})
	}
	ADDQ(Imm(bytes), taps)
	ADDQ(Imm(panelColumns*bytes), panel)
	DECQ(depth)
	JMP(LabelRef("loop"))
	Label("end")
	VZEROUPPER()
	RET()
}

// transpose packs eight columns of a panel, eight of the depth at a time.
func transpose() {
	TEXT("transpose", NOSPLIT, "func(panel, source *float32, offsets *[8]int, depth int)")
	Pragma("noescape")
	Doc("transpose is packColumns for eight columns, which begin at offsets, and a depth", "that is a multiple of eight.")
	panel := Load(Param("panel"), GP64())
	source := Load(Param("source"), GP64())
	offsets := Load(Param("offsets"), GP64())
	var columns [vector]GPVirtual
	for j := range columns {
		columns[j] = GP64()
		MOVQ(Mem{Base: offsets, Disp: 8 * j}, columns[j])
		LEAQ(Mem{Base: source, Index: columns[j], Scale: bytes}, columns[j])
	}
	depth := Load(Param("depth"), GP64())
	at := GP64()
	XORQ(at, at)
	Label("loop")
	CMPQ(at, depth)
	JGE(LabelRef("end"))
	for half := range 2 {
		var pairs [4]VecVirtual
		for j := range pairs {
			pairs[j] = YMM()
			disp := half * 4 * bytes
			VMOVUPS(Mem{Base: columns[j], Index: at, Scale: bytes, Disp: disp}, pairs[j].AsX())
			VINSERTF128(Imm(1), Mem{Base: columns[j+4], Index: at, Scale: bytes, Disp: disp}, pairs[j], pairs[j])
		}
		for i, unpack := range []func(ops ...Op){VUNPCKLPS, VUNPCKHPS} {
			left, right := YMM(), YMM()
			unpack(pairs[1], pairs[0], left)
			unpack(pairs[3], pairs[2], right)
			for k, pattern := range []uint64{0x44, 0xee} {
				row := YMM()
				VSHUFPS(Imm(pattern), right, left, row)
				VMOVUPS(row, Mem{Base: panel, Disp: (half*4 + i*2 + k) * panelColumns * bytes})
			}
		}
	}
	ADDQ(Imm(vector), at)
	ADDQ(U32(vector*panelColumns*bytes), panel)
	JMP(LabelRef("loop"))
	Label("end")
	VZEROUPPER()
	RET()
}
