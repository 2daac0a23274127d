package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// windowRuns writes the packing of a panel of patches in which each half is two runs: two loads and
// a blend for each vector of eight, or four masked loads for all sixteen.
func windowRuns(t target) {
	name := "windowRuns" + t.suffix
	TEXT(name, NOSPLIT, "func(panel, padded *float32, halves *[6]int32, taps *int32, depth int)")
	Pragma("noescape")
	Doc(name + " is packWindow for a panel of runs.")
	panel := Load(Param("panel"), GP64())
	padded := Load(Param("padded"), GP64())
	halves := Load(Param("halves"), GP64())
	var runs [2][2]Mem // of the halves
	for h := range runs {
		for i := range runs[h] {
			pointer := GP64()
			MOVLQSX(Mem{Base: halves, Disp: (3*h + i) * bytes}, pointer)
			LEAQ(Mem{Base: padded, Index: pointer, Scale: bytes}, pointer)
			runs[h][i] = Mem{Base: pointer, Scale: bytes}
		}
	}
	var load func(h int, tap GPVirtual) VecVirtual // the vectors of a row
	if t.lanes == panelColumns {
		load = masked(halves, runs)
	} else {
		load = blended(halves, runs)
	}
	taps := Load(Param("taps"), GP64())
	depth := Load(Param("depth"), GP64())
	step := func(n int) {
		tap := GP64()
		MOVLQSX(Mem{Base: taps, Disp: n * bytes}, tap)
		for h := range panelColumns / t.lanes {
			VMOVUPS(load(h, tap), Mem{Base: panel, Disp: (n*panelColumns + h*t.lanes) * bytes})
		}
	}
	unrolledByTwo(0, depth, func() {
		step(0)
		step(1)
		ADDQ(Imm(2*bytes), taps)
		ADDQ(Imm(2*panelColumns*bytes), panel)
	}, func() { step(0) })
	VZEROUPPER()
	RET()
}

// blended loads a half from its two runs.
func blended(halves Register, runs [2][2]Mem) func(h int, tap GPVirtual) VecVirtual {
	masks := GLOBL("splitMasks", RODATA|NOPTR)
	for i := range 2 * vector {
		value := uint32(0)
		if i < vector {
			value = 1<<32 - 1
		}
		DATA(i*bytes, U32(value))
	}
	table := GP64()
	LEAQ(masks, table)
	var mask [2]VecVirtual
	for h := range mask {
		mask[h] = YMM()
		split, at := GP64(), GP64()
		MOVLQSX(Mem{Base: halves, Disp: (3*h + 2) * bytes}, split)
		SHLQ(Imm(2), split)
		MOVQ(table, at)
		SUBQ(split, at)
		VMOVUPS(Mem{Base: at, Disp: vector * bytes}, mask[h])
	}
	return func(h int, tap GPVirtual) VecVirtual {
		v := YMM()
		VMOVUPS(runs[h][1].Idx(tap, bytes), v)
		VBLENDVPS(mask[h], runs[h][0].Idx(tap, bytes), v, v)
		return v
	}
}

// masked loads a row from the two runs of both halves, each into its own lanes.
func masked(halves Register, runs [2][2]Mem) func(_ int, tap GPVirtual) VecVirtual {
	var masks [2][2]Register
	for h := range masks {
		split, one, first, second := GP64(), GP64(), GP64(), GP64()
		MOVLQSX(Mem{Base: halves, Disp: (3*h + 2) * bytes}, split)
		MOVQ(U32(1), one)
		SHLXQ(split, one, first)
		DECQ(first)
		MOVQ(first, second)
		XORQ(U32(1<<vector-1), second)
		for i, bits := range []GPVirtual{first, second} {
			SHLQ(Imm(uint64(h*vector)), bits)
			masks[h][i] = K()
			KMOVW(bits.As32(), masks[h][i])
		}
	}
	return func(_ int, tap GPVirtual) VecVirtual {
		v := ZMM()
		VMOVUPS_Z(runs[0][0].Idx(tap, bytes), masks[0][0], v)
		VMOVUPS(runs[0][1].Idx(tap, bytes), masks[0][1], v)
		for i := range 2 {
			VMOVUPS(runs[1][i].Idx(tap, bytes).Offset(-vector*bytes), masks[1][i], v)
		}
		return v
	}
}

// windowGather writes the packing of any panel of patches, with gathers.
func windowGather(t target) {
	name := "windowGather" + t.suffix
	TEXT(name, NOSPLIT, "func(panel, padded *float32, pixels *[16]int32, taps *int32, depth int)")
	Pragma("noescape")
	Doc(name + " is packWindow for any panel.")
	panel := Load(Param("panel"), GP64())
	padded := Load(Param("padded"), GP64())
	pixels := Load(Param("pixels"), GP64())
	index := make([]VecVirtual, panelColumns/t.lanes)
	for h := range index {
		index[h] = t.new()
		VMOVUPS(Mem{Base: pixels, Disp: h * t.lanes * bytes}, index[h])
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
		v := t.zero()
		from := Mem{Base: base, Index: index[h], Scale: bytes}
		if t.lanes == panelColumns {
			mask := K()
			KXNORW(mask, mask, mask)
			VGATHERDPS(from, mask, v)
		} else {
			mask := YMM()
			VPCMPEQD(mask, mask, mask)
			VGATHERDPS(mask, from, v)
		}
		VMOVUPS(v, Mem{Base: panel, Disp: h * t.lanes * bytes})
	}
	ADDQ(Imm(bytes), taps)
	ADDQ(Imm(panelColumns*bytes), panel)
	DECQ(depth)
	JMP(LabelRef("loop"))
	Label("end")
	VZEROUPPER()
	RET()
}

// copyRows writes the packing of whole panels of rows. Each row is prefetched some rows ahead: rows
// may be on different pages, where the hardware prefetcher does not help. The last rows instead
// prefetch the first rows of the next call, which packs the columns after these.
func copyRows(t target) {
	const ahead = 16 // rows
	name := "copyRows" + t.suffix
	TEXT(name, NOSPLIT, "func(panels *float32, size int, source *float32, stride, depth, whole int)")
	Pragma("noescape")
	Doc(name + " is packRows for whole panels; depth and whole are at least 1.")
	panels, size := Load(Param("panels"), GP64()), loadBytes("size")
	source, stride := Load(Param("source"), GP64()), loadBytes("stride")
	depth, whole := Load(Param("depth"), GP64()), Load(Param("whole"), GP64())
	// distance is the distance in bytes to the line that is prefetched, last the same for the last
	// rows.
	distance, last, before, none := GP64(), GP64(), GP64(), GP64()
	IMUL3Q(Imm(ahead), stride, distance)
	MOVQ(whole, last)
	SHLQ(Imm(6), last)
	XORQ(none, none)
	MOVQ(depth, before)
	SUBQ(Imm(ahead), before) // rows before the last ones
	CMOVQLE(none, before)
	CMOVQLE(last, distance)
	IMULQ(stride, before)
	SUBQ(before, last)
	Label("rows")
	from, to, left := GP64(), GP64(), GP64()
	MOVQ(source, from)
	MOVQ(panels, to)
	MOVQ(whole, left)
	Label("panels")
	PREFETCHT0(Mem{Base: from, Index: distance, Scale: 1})
	for h := range panelColumns / t.lanes {
		v := t.new()
		VMOVUPS(Mem{Base: from, Disp: h * t.lanes * bytes}, v)
		VMOVUPS(v, Mem{Base: to, Disp: h * t.lanes * bytes})
	}
	ADDQ(Imm(panelColumns*bytes), from)
	ADDQ(size, to)
	DECQ(left)
	JNZ(LabelRef("panels"))
	ADDQ(stride, source)
	ADDQ(Imm(panelColumns*bytes), panels)
	DECQ(depth)
	CMPQ(depth, Imm(ahead))
	CMOVQEQ(last, distance)
	TESTQ(depth, depth)
	JNZ(LabelRef("rows"))
	VZEROUPPER()
	RET()
}

// transpose writes the packing of eight columns of a panel, eight of the depth at a time.
func transpose() {
	TEXT("transpose", NOSPLIT, "func(panel *float32, distance int, source *float32, offsets *[8]int, depth int)")
	Pragma("noescape")
	Doc("transpose is packColumns for eight columns, which start at offsets. Rows are distance elements apart and",
		"written in order; depth is a positive multiple of eight.")
	panel, distance := Load(Param("panel"), GP64()), loadBytes("distance")
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
		for _, unpack := range []func(ops ...Op){VUNPCKLPS, VUNPCKHPS} {
			left, right := YMM(), YMM()
			unpack(pairs[1], pairs[0], left)
			unpack(pairs[3], pairs[2], right)
			for _, pattern := range []uint64{0x44, 0xee} {
				row := YMM()
				VSHUFPS(Imm(pattern), right, left, row)
				VMOVUPS(row, Mem{Base: panel})
				ADDQ(distance, panel)
			}
		}
	}
	ADDQ(Imm(vector), at)
	JMP(LabelRef("loop"))
	Label("end")
	VZEROUPPER()
	RET()
}
