package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// sumRows writes the addition of rows, passLanes columns at a time.
func sumRows(t target) {
	TEXT("sumRows"+t.suffix, NOSPLIT, "func(y, x *float32, columns, rows, stride int)")
	Pragma("noescape")
	Doc("sumRows" + t.suffix + " is SumRows for a number of columns that is a multiple of 16 and not 0, and at least one row.")
	y, x, columns := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("columns"), GP64())
	stride := loadBytes("stride")
	Label("columns")
	var sums []VecVirtual
	for range passLanes / t.lanes {
		sums = append(sums, t.zero())
	}
	at, rows := GP64(), Load(Param("rows"), GP64())
	MOVQ(x, at)
	Label("rows")
	for i, v := range sums {
		VADDPS(Mem{Base: at, Disp: i * t.lanes * bytes}, v, v)
	}
	ADDQ(stride, at)
	DECQ(rows)
	JNZ(LabelRef("rows"))
	for i, v := range sums {
		VMOVUPS(v, Mem{Base: y, Disp: i * t.lanes * bytes})
	}
	ADDQ(Imm(passLanes*bytes), x)
	ADDQ(Imm(passLanes*bytes), y)
	SUBQ(Imm(passLanes), columns)
	JNZ(LabelRef("columns"))
	VZEROUPPER()
	RET()
}

// scaleBytes writes the conversion of bytes.
func scaleBytes(t target) {
	TEXT("scaleBytes"+t.suffix, NOSPLIT, "func(y *float32, x *uint8, n int, scale, shift float32)")
	Pragma("noescape")
	Doc("scaleBytes" + t.suffix + " is ScaleBytes for a number of elements that is a multiple of 16 and not 0.")
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	scale, shift := t.new(), t.new()
	VBROADCASTSS(NewParamAddr("scale", 24), scale)
	VBROADCASTSS(NewParamAddr("shift", 28), shift)
	Label("loop")
	for i := range passLanes / t.lanes {
		v := t.new()
		VPMOVZXBD(Mem{Base: x, Disp: i * t.lanes}, v)
		VCVTDQ2PS(v, v)
		VMULPS(scale, v, v)
		VADDPS(shift, v, v)
		VMOVUPS(v, Mem{Base: y, Disp: i * t.lanes * bytes})
	}
	ADDQ(Imm(passLanes), x)
	ADDQ(Imm(passLanes*bytes), y)
	SUBQ(Imm(passLanes), n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
