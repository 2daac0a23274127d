package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// linesOf writes the loops over lines and over groups of eight elements. If a line is not a
// multiple of eight, its last eight overlap those before them, so it must have at least eight
// elements. pointers[i] advances by each[i] bytes per group.
func linesOf(pointers []GPVirtual, strides []GPVirtual, each []int, eight func(at []Mem)) {
	lines := Load(Param("lines"), GP64())
	place := make([]GPVirtual, len(pointers))
	at := make([]Mem, len(pointers))
	for i := range place {
		place[i] = GP64()
		at[i] = Mem{Base: place[i]}
	}
	Label("line")
	left := Load(Param("width"), GP64())
	for i, p := range pointers {
		MOVQ(p, place[i])
	}
	Label("eight")
	eight(at)
	SUBQ(Imm(vector), left)
	JZ(LabelRef("next"))
	CMPQ(left, Imm(vector))
	JGE(LabelRef("whole"))
	for i, p := range place {
		back := GP64()
		IMUL3Q(Imm(uint64(each[i]/vector)), left, back)
		ADDQ(back, p)
	}
	MOVQ(U32(vector), left)
	JMP(LabelRef("eight"))
	Label("whole")
	for i, p := range place {
		ADDQ(Imm(uint64(each[i])), p)
	}
	JMP(LabelRef("eight"))
	Label("next")
	for i, p := range pointers {
		ADDQ(strides[i], p)
	}
	DECQ(lines)
	JNZ(LabelRef("line"))
	VZEROUPPER()
	RET()
}

// copyAtOnce is the number of vectors that copyLines copies at a time.
const copyAtOnce = 4

// copyLines writes the copy of lines, several vectors at a time. If a line is not a multiple of
// eight, its last eight overlap those before them.
func copyLines() {
	TEXT("copyLines", NOSPLIT, "func(to *float32, toLine int, from *float32, fromLine, lines, width int)")
	Pragma("noescape")
	Doc("copyLines copies lines, at least one, of at least eight elements. Lines are toLine and fromLine elements apart.")
	to, from := Load(Param("to"), GP64()).(GPVirtual), Load(Param("from"), GP64()).(GPVirtual)
	toLine, fromLine, lines, width := loadBytes("toLine"), loadBytes("fromLine"), Load(Param("lines"), GP64()), loadBytes("width")
	const each = vector * bytes
	move := func(at GPVirtual, count int) {
		var some []VecVirtual
		for i := range count {
			some = append(some, YMM())
			VMOVUPS(Mem{Base: from, Index: at, Scale: 1, Disp: i * each}, some[i])
		}
		for i, v := range some {
			VMOVUPS(v, Mem{Base: to, Index: at, Scale: 1, Disp: i * each})
		}
	}
	// at is the position in the line, in bytes; most and last are the positions of the last group
	// of vectors and of the last vector.
	most, last, at := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: width, Disp: -copyAtOnce * each}, most)
	LEAQ(Mem{Base: width, Disp: -each}, last)
	Label("line")
	XORQ(at, at)
	CMPQ(at, most)
	JG(LabelRef("rest"))
	Label("several")
	move(at, copyAtOnce)
	ADDQ(U32(copyAtOnce*each), at)
	CMPQ(at, most)
	JLE(LabelRef("several"))
	Label("rest")
	CMPQ(at, last)
	JGE(LabelRef("end"))
	move(at, 1)
	ADDQ(Imm(each), at)
	JMP(LabelRef("rest"))
	Label("end")
	CMPQ(at, width)
	JE(LabelRef("next"))
	move(last, 1)
	Label("next")
	ADDQ(toLine, to)
	ADDQ(fromLine, from)
	DECQ(lines)
	JNZ(LabelRef("line"))
	VZEROUPPER()
	RET()
}

// zipLines writes the copy of lines whose even and odd elements are stored separately.
func zipLines() {
	TEXT("zipLines", NOSPLIT, "func(to *float32, toLine int, even, odd *float32, fromLine, lines, width int)")
	Pragma("noescape")
	Doc("zipLines interleaves even and odd elements into lines of width pairs, at least eight. Lines are toLine and fromLine elements apart.")
	to, even, odd := Load(Param("to"), GP64()).(GPVirtual), Load(Param("even"), GP64()).(GPVirtual), Load(Param("odd"), GP64()).(GPVirtual)
	from := loadBytes("fromLine")
	const each = vector * bytes
	linesOf([]GPVirtual{to, even, odd}, []GPVirtual{loadBytes("toLine"), from, from}, []int{2 * each, each, each}, func(at []Mem) {
		first, second, low, high := YMM(), YMM(), YMM(), YMM()
		VMOVUPS(at[1], first)
		VMOVUPS(at[2], second)
		VUNPCKLPS(second, first, low)
		VUNPCKHPS(second, first, high)
		VPERM2F128(Imm(0x20), high, low, first)
		VPERM2F128(Imm(0x31), high, low, second)
		VMOVUPS(first, at[0])
		VMOVUPS(second, at[0].Offset(each))
	})
}

// unzipLines writes the copy of the even and the odd elements of lines to lines of their own.
func unzipLines() {
	TEXT("unzipLines", NOSPLIT, "func(even, odd *float32, toLine int, from *float32, fromLine, lines, width int)")
	Pragma("noescape")
	Doc("unzipLines separates the even and odd elements of lines of width pairs, at least eight. Lines are toLine and fromLine elements apart.")
	even, odd, from := Load(Param("even"), GP64()).(GPVirtual), Load(Param("odd"), GP64()).(GPVirtual), Load(Param("from"), GP64()).(GPVirtual)
	to := loadBytes("toLine")
	const each = vector * bytes
	linesOf([]GPVirtual{even, odd, from}, []GPVirtual{to, to, loadBytes("fromLine")}, []int{each, each, 2 * each}, func(at []Mem) {
		first, second, v := YMM(), YMM(), YMM()
		VMOVUPS(at[2], first)
		VMOVUPS(at[2].Offset(each), second)
		for i, imm := range []uint64{0b10001000, 0b11011101} { // elements 0 and 2, or 1 and 3, of each half
			VSHUFPS(Imm(imm), second, first, v)
			VPERMPD(Imm(0b11011000), v, v)
			VMOVUPS(v, at[i])
		}
	})
}

// copyNarrow writes the copy of lines shorter than a vector.
func copyNarrow() {
	TEXT("copyNarrow", NOSPLIT, "func(to *float32, toLine int, from *float32, fromLine, lines int, mask *[8]int32)")
	Pragma("noescape")
	Doc("copyNarrow copies the elements of lines, at least one, whose lanes of the mask are negative.")
	to, from, lines := Load(Param("to"), GP64()), Load(Param("from"), GP64()), Load(Param("lines"), GP64())
	toLine, fromLine := loadBytes("toLine"), loadBytes("fromLine")
	mask, v := YMM(), YMM()
	VMOVUPS(Mem{Base: Load(Param("mask"), GP64())}, mask)
	Label("line")
	VMASKMOVPS(Mem{Base: from}, mask, v)
	VMASKMOVPS(v, mask, Mem{Base: to})
	ADDQ(toLine, to)
	ADDQ(fromLine, from)
	DECQ(lines)
	JNZ(LabelRef("line"))
	VZEROUPPER()
	RET()
}
