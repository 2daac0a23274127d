package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lineTaps is the columns of a filter that accumulateLines treats.
const lineTaps = 5

// accumulateLines writes the sums of products of two channels' lines with lines of x moved by each tap.
func accumulateLines() {
	TEXT("accumulateLinesAVX2", NOSPLIT, "func(dout *float32, second, image int, x *float32, offsets *int32, count, images, rows, line, xRow, xImage int,"+
		" first, other *float32, add bool)")
	Pragma("noescape")
	Doc("accumulateLinesAVX2 is accumulateLines.")
	offsets, count := Load(Param("offsets"), GP64()), Load(Param("count"), GP64())
	second := loadBytes("second")
	first, other := Load(Param("first"), GP64()), Load(Param("other"), GP64())

	Label("offset")
	x, offset := Load(Param("x"), GP64()), GP64()
	MOVLQSX(Mem{Base: offsets}, offset)
	LEAQ(Mem{Base: x, Index: offset, Scale: bytes}, x)
	ADDQ(Imm(bytes), offsets)
	var sums [2][lineTaps]VecVirtual
	for half := range sums {
		for t := range sums[half] {
			sums[half][t] = YMM()
			VXORPS(sums[half][t], sums[half][t], sums[half][t])
		}
	}
	dout, images := Load(Param("dout"), GP64()), Load(Param("images"), GP64())
	Label("image")
	rows, at, row := Load(Param("rows"), GP64()), GP64(), GP64()
	MOVQ(dout, at)
	MOVQ(x, row)
	Label("row")
	line, from := Load(Param("line"), GP64()), GP64()
	MOVQ(row, from)
	Label("vector")
	a, b := YMM(), YMM()
	VMOVUPS(Mem{Base: at}, a)
	VMOVUPS(Mem{Base: at, Index: second, Scale: 1}, b)
	for t := range lineTaps {
		v := YMM()
		VMOVUPS(Mem{Base: from, Disp: t * bytes}, v)
		VFMADD231PS(v, a, sums[0][t])
		VFMADD231PS(v, b, sums[1][t])
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

	for half, to := range []Register{first, other} {
		for t := range lineTaps {
			horizontal(sums[half][t])
		}
		add := Load(Param("add"), GP8())
		TESTB(add, add)
		label := []string{"first", "other"}[half]
		JZ(LabelRef(label))
		for t := range lineTaps {
			v := sums[half][t].AsX()
			VADDSS(Mem{Base: to, Disp: t * bytes}, v, v)
		}
		Label(label)
		for t := range lineTaps {
			VMOVSS(sums[half][t].AsX(), Mem{Base: to, Disp: t * bytes})
		}
		ADDQ(Imm(lineTaps*bytes), to)
	}
	DECQ(count)
	JNZ(LabelRef("offset"))
	VZEROUPPER()
	RET()
}

// horizontal leaves the sum of a vector in its lowest element.
func horizontal(v VecVirtual) {
	high := YMM()
	VEXTRACTF128(Imm(1), v, high.AsX())
	VADDPS(high.AsX(), v.AsX(), v.AsX())
	VMOVHLPS(v.AsX(), v.AsX(), high.AsX())
	VADDPS(high.AsX(), v.AsX(), v.AsX())
	VMOVSHDUP(v.AsX(), high.AsX())
	VADDSS(high.AsX(), v.AsX(), v.AsX())
}
