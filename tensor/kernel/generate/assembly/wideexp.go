package assembly

import (
	"strconv"

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

// exponentials has the constants of package kernel's wideExp.
type exponentials struct {
	t            target
	coefficients Register
	held         [wideExpOne + 1]VecVirtual
}

// exponentialsOf loads the constants. In AVX-512 they stay in registers; AVX2 has too few and
// broadcasts them at each use.
func exponentialsOf(t target) *exponentials {
	x := &exponentials{t: t, coefficients: Load(Param("coefficients"), GP64())}
	if t.lanes == panelColumns {
		for i := range x.held {
			x.held[i] = x.broadcast(i)
		}
	}
	return x
}

const wideBytes = 8

func (x *exponentials) broadcast(i int) VecVirtual {
	v := x.t.new()
	VBROADCASTSD(Mem{Base: x.coefficients, Disp: i * wideBytes}, v)
	return v
}

func (x *exponentials) of(i int) VecVirtual {
	if x.held[i] != nil {
		return x.held[i]
	}
	return x.broadcast(i)
}

// result returns the result of an instruction in a new register.
func (x *exponentials) result(instruction func(ops ...Op), b, a Op) VecVirtual {
	v := x.t.new()
	instruction(b, a, v)
	return v
}

// apply returns e^v, by the operations of package kernel's wideExp.
func (x *exponentials) apply(v VecVirtual) VecVirtual {
	of, result := x.of, x.result
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
	if x.t.lanes == vector {
		mask := result(func(ops ...Op) { VCMPPD(Imm(lessOrUnordered), ops[0], ops[1], ops[2]) }, v, of(wideExpLowest))
		return result(VANDPD, mask, y)
	}
	mask := K()
	VCMPPD(Imm(lessOrUnordered), v, of(wideExpLowest), mask)
	VMOVUPD_Z(y, mask, y)
	return y
}

// lessOrUnordered is the comparison "not greater than", true for NaN.
const lessOrUnordered = 0x0a

// wideExp writes a loop over a multiple of eight elements.
func wideExp(t target) {
	TEXT("wideExp"+t.suffix, NOSPLIT, "func(x *float64, n int, coefficients *float64)")
	Pragma("noescape")
	Doc("wideExp" + t.suffix + " is WideExp for a multiple of eight elements.")
	x, n, exponentials := Load(Param("x"), GP64()), Load(Param("n"), GP64()), exponentialsOf(t)
	k := GP64()
	XORQ(k, k)
	Label("loop")
	for part := 0; part < vector; part += t.lanes / 2 {
		at := Mem{Base: x, Index: k, Scale: wideBytes, Disp: part * wideBytes}
		v := t.new()
		VMOVUPD(at, v)
		VMOVUPD(exponentials.apply(v), at)
	}
	ADDQ(Imm(vector), k)
	CMPQ(k, n)
	JLT(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// sumExp writes SumExp: for each column of the rows, one vector has the elements of all rows, or in
// AVX2 of half of them.
func sumExp(t target) {
	name := "sumExp" + t.suffix
	TEXT(name, NOSPLIT, "func(z *float32, rows *[8]int32, width int, e, largest, sums, coefficients *float64)")
	Pragma("noescape")
	Doc(name + " is SumExp; rows has the offset of each row.")
	z, rows, width := Load(Param("z"), GP64()), Load(Param("rows"), GP64()), Load(Param("width"), GP64())
	e, largest, sums := Load(Param("e"), GP64()), Load(Param("largest"), GP64()), Load(Param("sums"), GP64())
	exponentials := exponentialsOf(t)
	lanes := t.lanes / 2
	for part := 0; part < vector; part += lanes {
		disp := part * wideBytes
		loop := func(name string, body func(at Mem)) {
			k, left := GP64(), GP64()
			MOVQ(e, k)
			MOVQ(width, left)
			Label(name + strconv.Itoa(part))
			body(Mem{Base: k, Disp: disp})
			ADDQ(Imm(vector*wideBytes), k)
			DECQ(left)
			JNZ(LabelRef(name + strconv.Itoa(part)))
		}
		from := GP64()
		MOVQ(z, from)
		index, narrow := XMM(), Register(XMM())
		if t.lanes == panelColumns {
			index, narrow = YMM(), YMM()
		}
		VMOVUPS(Mem{Base: rows, Disp: part * bytes}, index)
		// The first maximum is NaN, which any number replaces.
		top := t.new()
		if t.lanes == panelColumns {
			VPTERNLOGQ(Imm(0xff), top, top, top)
		} else {
			VPCMPEQD(top, top, top)
		}
		loop("largest", func(at Mem) {
			VXORPS(narrow, narrow, narrow) // or the gather would wait for the previous one
			element := Mem{Base: from, Index: index, Scale: bytes}
			if t.lanes == panelColumns {
				mask := K()
				KXNORB(mask, mask, mask)
				VGATHERDPS(element, mask, narrow)
			} else {
				mask := XMM()
				VPCMPEQD(mask, mask, mask)
				VGATHERDPS(mask, element, narrow)
			}
			v := t.new()
			VCVTPS2PD(narrow, v)
			VMOVUPD(v, at)
			ADDQ(Imm(bytes), from)
			VMAXPD(v, top, top)
		})
		VMOVUPD(top, Mem{Base: largest, Disp: disp})
		sum := t.zero()
		loop("exponentials", func(at Mem) {
			v := t.new()
			VMOVUPD(at, v)
			VSUBPD(top, v, v)
			y := exponentials.apply(v)
			VMOVUPD(y, at)
			VADDPD(y, sum, sum)
		})
		VMOVUPD(sum, Mem{Base: sums, Disp: disp})
	}
	VZEROUPPER()
	RET()
}
