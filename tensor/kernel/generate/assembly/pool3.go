package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// noPlace, as in package kernel, is the place of a maximum that is minus infinity or NaN.
const noPlace = 0xff

// maxLines writes the functions for maxima of windows of three columns with stride 2.
func maxLines() {
	TEXT("maxLineAVX512", NOSPLIT, "func(to, from *float32, rows, width int, masks *uint16, blocks, padWidth int)")
	Pragma("noescape")
	Doc("maxLineAVX512 writes the maxima of a line of windows over some rows of three columns with stride 2.")
	to := Load(Param("to"), GP64())
	best := ZMM()
	windowsOfThree(func() { VMOVAPS(lowest(), best) }, func(_ int, v VecVirtual) {
		VMOVAPS(maximum512(best, v), best)
	}, func() {}, func(valid Register) {
		VMOVUPS(best, valid, Mem{Base: to})
		ADDQ(Imm(panelColumns*bytes), to)
	})

	TEXT("placeLineAVX512", NOSPLIT, "func(to *uint8, from *float32, rows, width int, masks *uint16, blocks, padWidth int)")
	Pragma("noescape")
	Doc("placeLineAVX512 writes the places of these maxima: 4 row + column, or noPlace.")
	to = Load(Param("to"), GP64())
	best, place, four := ZMM(), ZMM(), number512(4)
	columns := [...]VecVirtual{ZMM(), ZMM(), ZMM()}
	windowsOfThree(func() {
		VMOVAPS(lowest(), best)
		VMOVAPS(number512(noPlace), place)
		for s, v := range columns {
			VMOVAPS(number512(uint32(s)), v)
		}
	}, func(s int, v VecVirtual) {
		above := K()
		VCMPPS(Imm(greater), best, v, above)
		VMOVAPS(v, above, best)
		VMOVDQA32(columns[s], above, place)
	}, func() {
		for _, v := range columns {
			VPADDD(four, v, v)
		}
	}, func(valid Register) {
		VPMOVDB(place, valid, Mem{Base: to})
		ADDQ(Imm(panelColumns), to)
	})
}

// lowest returns minus infinity in all lanes.
func lowest() VecVirtual { return number512(0xff800000) }

// windowsOfThree writes the loops over blocks of sixteen outputs and over the rows of their windows.
// It calls visit with the elements of each column of a row, where elements outside the image are
// minus infinity.
func windowsOfThree(begin func(), visit func(s int, v VecVirtual), nextRow func(), end func(valid Register)) {
	from, width := Load(Param("from"), GP64()), loadBytes("width")
	masks, blocks := Load(Param("masks"), GP64()), Load(Param("blocks"), GP64())
	SUBQ(loadBytes("padWidth"), from)
	evens, odds, outside := ZMM(), ZMM(), lowest()
	VMOVUPS(everySecond(0), evens)
	VMOVUPS(everySecond(1), odds)
	Label("block")
	valid := loadMasks(masks, 5)
	begin()
	at, left := GP64(), Load(Param("rows"), GP64())
	MOVQ(from, at)
	Label("row")
	tapPlane{side: 3, stride: 2}.readLine(at, valid, evens, odds, outside, visit)
	nextRow()
	ADDQ(width, at)
	DECQ(left)
	JNZ(LabelRef("row"))
	end(valid[4])
	ADDQ(U32(2*panelColumns*bytes), from)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}
