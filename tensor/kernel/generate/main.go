// Command generate writes the AVX2 and FMA assembly of package kernel and its
// Go stubs. It is a module of its own, so that avo is no dependency of Pollen.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Sizes of package kernel's packed panels, in float32.
const (
	panelRows    = 6
	panelColumns = 16
	vector       = 8
	bytes        = 4
)

func main() {
	ConstraintExpr("!purego")
	for rows := 1; rows <= panelRows; rows++ {
		multiply(rows)
	}
	for rows := 1; rows <= panelRows; rows++ {
		multiplyTable(rows)
	}
	windowRuns()
	windowGather()
	transpose()
	Generate()
}

// Bits of flags in package kernel.
const (
	flagAccumulate = 1 << iota
	flagBiasRow
	flagBiasColumn
	flagReLU
)

// sums are the accumulators of a tile: rows of two vectors.
type sums [][2]VecVirtual

func newSums(rows int) sums {
	s := make(sums, rows)
	for i := range s {
		for h := range s[i] {
			s[i][h] = YMM()
			VXORPS(s[i][h], s[i][h], s[i][h])
		}
	}
	return s
}

// step adds the product of one depth: each row's scalar times the panel's row.
func (s sums) step(scalars []Mem, b Mem) {
	lo, hi := YMM(), YMM()
	VMOVUPS(b, lo)
	VMOVUPS(b.Offset(vector*bytes), hi)
	for i := range s {
		a := YMM()
		VBROADCASTSS(scalars[i], a)
		VFMADD231PS(lo, a, s[i][0])
		VFMADD231PS(hi, a, s[i][1])
	}
}

// each visits the accumulators with their place in the output.
func (s sums) each(c GPVirtual, stride GPVirtual, visit func(i, h int, sum VecVirtual, at Mem)) {
	row := GP64()
	MOVQ(c, row)
	for i := range s {
		for h := range s[i] {
			visit(i, h, s[i][h], Mem{Base: row, Disp: h * vector * bytes})
		}
		if i+1 < len(s) {
			ADDQ(stride, row)
		}
	}
}

func loadBytes(name string) GPVirtual {
	r := Load(Param(name), GP64()).(GPVirtual)
	SHLQ(Imm(2), r)
	return r
}

// rowAddresses returns the addresses of the left factor's rows, from at most two
// pointers, which advance together.
func rowAddresses(rows int, a, stride GPVirtual) (pointers []GPVirtual, scalars []Mem) {
	pointers = []GPVirtual{a}
	if rows > 3 {
		fourth := GP64()
		LEAQ(Mem{Base: a, Index: stride, Scale: 2}, fourth)
		ADDQ(stride, fourth)
		pointers = append(pointers, fourth)
	}
	for i := range rows {
		m := Mem{Base: pointers[i/3]}
		if i%3 != 0 {
			m.Index, m.Scale = stride, uint8(i%3)
		}
		scalars = append(scalars, m)
	}
	return pointers, scalars
}

// multiply writes the tile of the given number of rows with a strided left
// factor and all epilogues.
func multiply(rows int) {
	name := fmt.Sprintf("multiply%d", rows)
	TEXT(name, NOSPLIT, "func(depth int, a *float32, rowStride, depthStride int, b, c *float32, stride int, bias *float32, f int)")
	Pragma("noescape")
	Doc(name + " is multiply for a tile of that many rows.")
	depth := Load(Param("depth"), GP64())
	a := Load(Param("a"), GP64()).(GPVirtual)
	rowStride, depthStride := loadBytes("rowStride"), loadBytes("depthStride")
	b := Load(Param("b"), GP64())
	pointers, scalars := rowAddresses(rows, a, rowStride)
	s := newSums(rows)

	advance := func() {
		for _, p := range pointers {
			ADDQ(depthStride, p)
		}
	}
	Label("pairs")
	SUBQ(Imm(2), depth)
	JL(LabelRef("last"))
	s.step(scalars, Mem{Base: b})
	advance()
	s.step(scalars, Mem{Base: b, Disp: panelColumns * bytes})
	advance()
	ADDQ(Imm(2*panelColumns*bytes), b)
	JMP(LabelRef("pairs"))
	Label("last")
	ADDQ(Imm(2), depth)
	JZ(LabelRef("epilogue"))
	s.step(scalars, Mem{Base: b})

	Label("epilogue")
	c := Load(Param("c"), GP64()).(GPVirtual)
	stride := loadBytes("stride")
	f := Load(Param("f"), GP64())
	bias := Load(Param("bias"), GP64())
	when := func(flag uint32, label string, then func()) {
		TESTQ(U32(flag), f)
		JZ(LabelRef(label))
		then()
		Label(label)
	}
	when(flagAccumulate, "accumulated", func() {
		s.each(c, stride, func(i, h int, sum VecVirtual, at Mem) { VADDPS(at, sum, sum) })
	})
	when(flagBiasRow, "row_biased", func() {
		for i := range s {
			v := YMM()
			VBROADCASTSS(Mem{Base: bias, Disp: i * bytes}, v)
			VADDPS(v, s[i][0], s[i][0])
			VADDPS(v, s[i][1], s[i][1])
		}
	})
	when(flagBiasColumn, "column_biased", func() {
		for h := range 2 {
			v := YMM()
			VMOVUPS(Mem{Base: bias, Disp: h * vector * bytes}, v)
			for i := range s {
				VADDPS(v, s[i][h], s[i][h])
			}
		}
	})
	when(flagReLU, "rectified", func() {
		zero := YMM()
		VXORPS(zero, zero, zero)
		for i := range s {
			for h := range 2 {
				// The maximum of a NaN and zero is the operand written first: NaN stays.
				VMAXPS(s[i][h], zero, s[i][h])
			}
		}
	})
	s.each(c, stride, func(i, h int, sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
	VZEROUPPER()
	RET()
}

// multiplyTable writes the tile of the given number of rows with a left factor
// addressed by tables.
func multiplyTable(rows int) {
	name := fmt.Sprintf("multiplyTable%d", rows)
	TEXT(name, NOSPLIT, "func(depth int, data *float32, rowOffsets, depthOffsets *int32, b, c *float32, stride int, accumulate bool)")
	Pragma("noescape")
	Doc(name + " is multiplyTable for a tile of that many rows.")
	depth := Load(Param("depth"), GP64())
	data := Load(Param("data"), GP64())
	offsets := Load(Param("rowOffsets"), GP64())
	pointers := make([]GPVirtual, rows)
	for i := range pointers {
		pointers[i] = GP64()
		MOVLQSX(Mem{Base: offsets, Disp: i * bytes}, pointers[i])
		LEAQ(Mem{Base: data, Index: pointers[i], Scale: bytes}, pointers[i])
	}
	table := Load(Param("depthOffsets"), GP64())
	b := Load(Param("b"), GP64())
	s := newSums(rows)

	step := func(n int) {
		at := GP64()
		MOVLQSX(Mem{Base: table, Disp: n * bytes}, at)
		scalars := make([]Mem, rows)
		for i, p := range pointers {
			scalars[i] = Mem{Base: p, Index: at, Scale: bytes}
		}
		s.step(scalars, Mem{Base: b, Disp: n * panelColumns * bytes})
	}
	Label("pairs")
	SUBQ(Imm(2), depth)
	JL(LabelRef("last"))
	step(0)
	step(1)
	ADDQ(Imm(2*bytes), table)
	ADDQ(Imm(2*panelColumns*bytes), b)
	JMP(LabelRef("pairs"))
	Label("last")
	ADDQ(Imm(2), depth)
	JZ(LabelRef("store"))
	step(0)

	Label("store")
	c := Load(Param("c"), GP64()).(GPVirtual)
	stride := loadBytes("stride")
	accumulate := Load(Param("accumulate"), GP8())
	TESTB(accumulate, accumulate)
	JZ(LabelRef("accumulated"))
	s.each(c, stride, func(i, h int, sum VecVirtual, at Mem) { VADDPS(at, sum, sum) })
	Label("accumulated")
	s.each(c, stride, func(i, h int, sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
	VZEROUPPER()
	RET()
}

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
