package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lines writes a loop over n >= 8 outputs, eight at a time; the last eight may
// repeat some of the ones before. body gets the byte offset of the first output.
func lines(n Register, body func(at GPVirtual)) {
	at, left := GP64(), GP64()
	XORQ(at, at)
	MOVQ(n, left)
	Label("loop")
	body(at)
	ADDQ(Imm(vector*bytes), at)
	SUBQ(Imm(vector), left)
	JLE(LabelRef("end"))
	CMPQ(left, Imm(vector))
	JGE(LabelRef("loop"))
	// Step back, so that exactly eight are left.
	LEAQ(Mem{Base: at, Index: left, Scale: bytes, Disp: -vector * bytes}, at)
	MOVQ(U32(vector), left)
	JMP(LabelRef("loop"))
	Label("end")
	VZEROUPPER()
	RET()
}

// pair loads the sixteen inputs above or below eight outputs.
func pair(line Register, at GPVirtual) [2]VecVirtual {
	v := [2]VecVirtual{YMM(), YMM()}
	for h := range v {
		VMOVUPS(Mem{Base: line, Index: at, Scale: 2, Disp: h * vector * bytes}, v[h])
	}
	return v
}

// maximum returns the greater of a and b in each place, or NaN where one is.
func maximum(a, b VecVirtual) VecVirtual {
	result, unordered := YMM(), YMM()
	VMAXPS(b, a, result) // b where one is NaN
	VCMPPS(Imm(3), a, a, unordered)
	VBLENDVPS(unordered, a, result, result)
	return result
}

// evenOdd parts sixteen elements by place; within either part the order is 0 1 4
// 5 2 3 6 7.
func evenOdd(v [2]VecVirtual) (even, odd VecVirtual) {
	even, odd = YMM(), YMM()
	VSHUFPS(Imm(0x88), v[1], v[0], even)
	VSHUFPS(Imm(0xdd), v[1], v[0], odd)
	return even, odd
}

// maxLine writes the forward pass of 2 x 2 maximum pooling.
func maxLine() {
	TEXT("maxLineAVX2", NOSPLIT, "func(y, upper, lower *float32, n int)")
	Pragma("noescape")
	Doc("maxLineAVX2 is maxLine for at least eight outputs.")
	y, upper, lower := Load(Param("y"), GP64()), Load(Param("upper"), GP64()), Load(Param("lower"), GP64())
	lines(Load(Param("n"), GP64()), func(at GPVirtual) {
		u, l := pair(upper, at), pair(lower, at)
		even, odd := evenOdd([2]VecVirtual{maximum(u[0], l[0]), maximum(u[1], l[1])})
		result := maximum(even, odd)
		VPERMPD(Imm(0xd8), result, result)
		VMOVUPS(result, Mem{Base: y, Index: at, Scale: 1})
	})
}

// maxLineBackward writes the backward pass of 2 x 2 maximum pooling.
func maxLineBackward() {
	TEXT("maxLineBackwardAVX2", NOSPLIT, "func(dupper, dlower, upper, lower, gradient *float32, n int)")
	Pragma("noescape")
	Doc("maxLineBackwardAVX2 is maxLineBackward for at least eight outputs.")
	dupper, dlower := Load(Param("dupper"), GP64()), Load(Param("dlower"), GP64())
	upper, lower := Load(Param("upper"), GP64()), Load(Param("lower"), GP64())
	gradient := Load(Param("gradient"), GP64())
	const greater = 0x1e
	lines(Load(Param("n"), GP64()), func(at GPVirtual) {
		// row returns the greater of each two neighbours and whether it is the
		// second.
		row := func(line Register) (best, second VecVirtual) {
			even, odd := evenOdd(pair(line, at))
			best, second = YMM(), YMM()
			VCMPPS(Imm(greater), even, odd, second)
			VMAXPS(even, odd, best)
			return best, second
		}
		upperBest, upperSecond := row(upper)
		lowerBest, lowerSecond := row(lower)
		below := YMM()
		VCMPPS(Imm(greater), upperBest, lowerBest, below)
		g := YMM()
		VPERMPD(Imm(0xd8), Mem{Base: gradient, Index: at, Scale: 1}, g)
		store := func(line Register, part, second VecVirtual) {
			even, odd, out := YMM(), YMM(), YMM()
			VANDNPS(part, second, even)
			VANDPS(part, second, odd)
			VUNPCKLPS(odd, even, out)
			VMOVUPS(out, Mem{Base: line, Index: at, Scale: 2})
			VUNPCKHPS(odd, even, out)
			VMOVUPS(out, Mem{Base: line, Index: at, Scale: 2, Disp: vector * bytes})
		}
		part := YMM()
		VANDNPS(g, below, part)
		store(dupper, part, upperSecond)
		VANDPS(g, below, part)
		store(dlower, part, lowerSecond)
	})
}
