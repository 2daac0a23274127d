package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lineTaps is the columns of a filter that accumulateLines treats.
const lineTaps = 5

// accumulateLines writes the sums of products of two channels' lines with lines of x moved by each tap. Eight pixels of both channels are one
// vector of AVX-512, two of AVX2; the order of the sums is the same.
func accumulateLines(t target) {
	name := "accumulateLines" + t.suffix
	TEXT(name, NOSPLIT, "func(dout *float32, second, image int, x *float32, offsets *int32, count, images, rows, line, xRow, xImage int,"+
		" first, other *float32, add bool)")
	Pragma("noescape")
	Doc(name + " is accumulateLines.")
	offsets, count := Load(Param("offsets"), GP64()), Load(Param("count"), GP64())
	second := loadBytes("second")
	first, other := Load(Param("first"), GP64()), Load(Param("other"), GP64())

	Label("offset")
	x, offset := Load(Param("x"), GP64()), GP64()
	MOVLQSX(Mem{Base: offsets}, offset)
	LEAQ(Mem{Base: x, Index: offset, Scale: bytes}, x)
	ADDQ(Imm(bytes), offsets)
	s := newSums(t, lineTaps)
	dout, images := Load(Param("dout"), GP64()), Load(Param("images"), GP64())
	Label("image")
	rows, at, row := Load(Param("rows"), GP64()), GP64(), GP64()
	MOVQ(dout, at)
	MOVQ(x, row)
	Label("row")
	line, from := Load(Param("line"), GP64()), GP64()
	MOVQ(row, from)
	Label("vector")
	pair := s.loadHalves([2]Mem{{Base: at}, {Base: at, Index: second, Scale: 1}})
	for tap, sums := range s.rows {
		v, moved := t.new(), Mem{Base: from, Disp: tap * bytes}
		if t.lanes == panelColumns {
			VBROADCASTF32X8(moved, v)
		} else {
			VMOVUPS(moved, v)
		}
		for h, sum := range sums {
			VFMADD231PS(v, pair[h], sum)
		}
	}
	ADDQ(Imm(vector*bytes), at)
	ADDQ(Imm(vector*bytes), from)
	SUBQ(Imm(vector), line)
	JNZ(LabelRef("vector"))
	step := loadBytes("xRow")
	ADDQ(step, row)
	DECQ(rows)
	JNZ(LabelRef("row"))
	step = loadBytes("xImage")
	ADDQ(step, x)
	step = loadBytes("image")
	ADDQ(step, dout)
	DECQ(images)
	JNZ(LabelRef("image"))

	var totals [2][lineTaps]Register
	for tap, sums := range s.rows {
		for half, v := range s.halves(sums) {
			horizontal(v)
			totals[half][tap] = v.AsX()
		}
	}
	for half, to := range []Register{first, other} {
		add := Load(Param("add"), GP8())
		TESTB(add, add)
		label := []string{"first", "other"}[half]
		JZ(LabelRef(label))
		for tap, v := range totals[half] {
			VADDSS(Mem{Base: to, Disp: tap * bytes}, v, v)
		}
		Label(label)
		for tap, v := range totals[half] {
			VMOVSS(v, Mem{Base: to, Disp: tap * bytes})
		}
		ADDQ(Imm(lineTaps*bytes), to)
	}
	DECQ(count)
	JNZ(LabelRef("offset"))
	VZEROUPPER()
	RET()
}

// horizontal leaves the sum of a vector of eight in its lowest element.
func horizontal(v VecVirtual) {
	high := YMM()
	VEXTRACTF128(Imm(1), v, high.AsX())
	VADDPS(high.AsX(), v.AsX(), v.AsX())
	VMOVHLPS(v.AsX(), v.AsX(), high.AsX())
	VADDPS(high.AsX(), v.AsX(), v.AsX())
	VMOVSHDUP(v.AsX(), high.AsX())
	VADDSS(high.AsX(), v.AsX(), v.AsX())
}
