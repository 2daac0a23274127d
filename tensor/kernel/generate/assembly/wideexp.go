package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Indices of package kernel's wideExponential.
const (
	wideExpLowest = iota
	wideExpHighest
	wideExpLog2e
	wideExpRound
	wideExpExponent
	wideExpLn2High
	wideExpLn2Low
	wideExpTerm13
	wideExpOne = wideExpTerm13 + 12
)

// wideExp writes a loop over a multiple of eight elements. It performs the operations of package
// kernel's wideExp.
func wideExp(t target) {
	const wide = 8 // bytes
	TEXT("wideExp"+t.suffix, NOSPLIT, "func(x *float64, n int, coefficients *float64)")
	Pragma("noescape")
	Doc("wideExp" + t.suffix + " is WideExp for a multiple of eight elements.")
	x, n, coefficients := Load(Param("x"), GP64()), Load(Param("n"), GP64()), Load(Param("coefficients"), GP64())
	lanes := t.lanes / 2
	constant := func(i int) VecVirtual {
		v := t.new()
		VBROADCASTSD(Mem{Base: coefficients, Disp: i * wide}, v)
		return v
	}
	// In AVX-512 the constants stay in registers; AVX2 has too few and broadcasts them at each use.
	var held [wideExpOne + 1]VecVirtual
	if t.lanes == panelColumns {
		for i := range held {
			held[i] = constant(i)
		}
	}
	of := func(i int) VecVirtual {
		if held[i] != nil {
			return held[i]
		}
		return constant(i)
	}
	result := func(instruction func(ops ...Op), b, a Op) VecVirtual {
		v := t.new()
		instruction(b, a, v)
		return v
	}
	k := GP64()
	XORQ(k, k)
	Label("loop")
	for part := 0; part < vector; part += lanes {
		at := Mem{Base: x, Index: k, Scale: wide, Disp: part * wide}
		v := t.new()
		VMOVUPD(at, v)
		// NaN stays: of a NaN and a number, the operand written first is the result.
		bounded := result(VMINPD, v, of(wideExpHighest))
		bounded = result(VMAXPD, bounded, of(wideExpLowest))
		whole := result(VADDPD, of(wideExpRound), result(VMULPD, of(wideExpLog2e), bounded))
		power := result(VPADDQ, of(wideExpExponent), whole)
		VPSLLQ(Imm(52), power, power)
		whole = result(VSUBPD, of(wideExpRound), whole)
		r := result(VSUBPD, result(VMULPD, of(wideExpLn2High), whole), bounded)
		r = result(VSUBPD, result(VMULPD, of(wideExpLn2Low), whole), r)
		q := of(wideExpTerm13)
		for term := wideExpTerm13 + 1; term < wideExpOne; term++ {
			q = result(VADDPD, of(term), result(VMULPD, r, q))
		}
		q = result(VADDPD, r, result(VMULPD, result(VMULPD, r, r), q))
		y := result(VMULPD, power, result(VADDPD, of(wideExpOne), q))
		// 0 below the lowest.
		if t.lanes == vector {
			mask := result(func(ops ...Op) { VCMPPD(Imm(lessOrUnordered), ops[0], ops[1], ops[2]) }, v, of(wideExpLowest))
			y = result(VANDPD, mask, y)
		} else {
			mask := K()
			VCMPPD(Imm(lessOrUnordered), v, of(wideExpLowest), mask)
			VMOVUPD_Z(y, mask, y)
		}
		VMOVUPD(y, at)
	}
	ADDQ(Imm(vector), k)
	CMPQ(k, n)
	JLT(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// lessOrUnordered is the comparison "not greater than", true for NaN.
const lessOrUnordered = 0x0a
