package assembly

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// expm1 writes e^x - 1. The operations are those of expm1 in package kernel, some of them fused.
func expm1(t target) {
	name := "expm1" + t.suffix
	TEXT(name, NOSPLIT, "func(y, x *float32, n int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is expm1 for n elements, a multiple of %d that is not 0. y may be x.", name, t.lanes))
	y, x, n := Load(Param("y"), GP64()), Load(Param("x"), GP64()), Load(Param("n"), GP64())
	constant := func(name string, value float32) VecVirtual {
		v := t.new()
		VBROADCASTSS(float32Data(name, value), v)
		return v
	}
	highest, lowest := constant("expm1Highest", 89), constant("expm1Lowest", -80)
	log2e, round := constant("expm1Log2e", math.Log2E), constant("expm1Round", 0x1.8p23)
	ln2High, ln2Low := constant("expm1Ln2High", 0.693359375), constant("expm1Ln2Low", math.Ln2-0.693359375)
	half := constant("expm1Half", 0.5)
	exponent := t.new()
	VPBROADCASTD(int32Data("expm1Exponent", 126), exponent)
	Label("loop")
	v, whole, power, r, q := t.new(), t.new(), t.new(), t.new(), t.new()
	VMOVUPS(Mem{Base: x}, v)
	VMINPS(v, highest, v) // v where it is NaN
	VMAXPS(v, lowest, v)
	VMULPS(log2e, v, whole)
	VADDPS(round, whole, whole)
	VPADDD(exponent, whole, power)
	VPSLLD(Imm(23), power, power)
	VSUBPS(round, whole, whole)
	VMOVAPS(v, r)
	VFNMADD231PS(ln2High, whole, r)
	VFNMADD231PS(ln2Low, whole, r)
	VBROADCASTSS(float32Data("expm1Term7", 1.0/5040), q)
	for i, term := range []float32{1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2} {
		c := t.new()
		VBROADCASTSS(float32Data("expm1Term"+string(rune('6'-i)), term), c)
		VFMADD213PS(c, r, q)
	}
	VMULPS(r, r, v)
	VFMADD213PS(r, v, q)
	VSUBPS(half, power, whole)
	VFMADD213PS(whole, power, q)
	VADDPS(q, q, q)
	VMOVUPS(q, Mem{Base: y})
	ADDQ(Imm(uint64(t.lanes*bytes)), x)
	ADDQ(Imm(uint64(t.lanes*bytes)), y)
	SUBQ(Imm(uint64(t.lanes)), n)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func float32Data(name string, value float32) Mem {
	data := GLOBL(name, RODATA|NOPTR)
	DATA(0, F32(value))
	return data
}

func int32Data(name string, value uint32) Mem {
	data := GLOBL(name, RODATA|NOPTR)
	DATA(0, U32(value))
	return data
}
