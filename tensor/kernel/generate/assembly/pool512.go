package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// sixteen loads the inputs of a pair of segments, of the line at line, into one vector.
func sixteen(line Register, pair [2]segment) VecVirtual {
	v := ZMM()
	VMOVUPS(Mem{Base: line, Index: pair[0].input, Scale: bytes}, v.AsY())
	VINSERTF32X8(Imm(1), Mem{Base: line, Index: pair[1].input, Scale: bytes}, v, v)
	return v
}

// maximum512 is maximum with a mask.
func maximum512(a, b VecVirtual) VecVirtual {
	result, isNaN := ZMM(), K()
	VMAXPS(b, a, result) // b where one is NaN
	VCMPPS(Imm(unordered), a, a, isNaN)
	VMOVAPS(a, isNaN, result)
	return result
}

// numbers are a vector of integers.
func numbers(name string, values ...uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, v := range values {
		DATA(i*bytes, U32(v))
	}
	return m
}

// maxPlanes512 writes maxPlanes with the two segments of a pair in one vector.
func maxPlanes512() {
	TEXT("maxPlanesAVX512", NOSPLIT, "func(upper, lower, y *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)")
	Pragma("noescape")
	Doc("maxPlanesAVX512 is maxPlanes.")
	floor, evens := ZMM(), ZMM()
	VBROADCASTSS(NewParamAddr("floor", 64), floor)
	VMOVUPS(numbers("evenThenOdd", 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15), evens)
	planes([]string{"upper", "lower"}, []string{"y"}, func(x, y []Register, pair [2]segment) {
		v := maximum512(sixteen(x[0], pair), sixteen(x[1], pair))
		VPERMPS(v, evens, v)
		odd := ZMM()
		VEXTRACTF32X8(Imm(1), v, odd.AsY())
		result := maximum512(v, odd)
		VMAXPS(result, floor, result) // result where it is NaN
		VMOVUPS(result.AsX(), Mem{Base: y[0], Index: pair[0].output, Scale: bytes})
		VEXTRACTF32X4(Imm(1), result.AsY(), Mem{Base: y[0], Index: pair[1].output, Scale: bytes})
	})
}

// maxPlanesBackward512 writes maxPlanesBackward with the two segments of a pair in one vector, in which both of two neighbours know their
// maximum and whether it is the second.
func maxPlanesBackward512() {
	TEXT("maxPlanesBackwardAVX512", NOSPLIT, "func(upper, lower, dupper, dlower, gradient *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)")
	Pragma("noescape")
	Doc("maxPlanesBackwardAVX512 is maxPlanesBackward.")
	twice, bits, firsts := ZMM(), GP32(), K()
	VMOVUPS(numbers("eachTwice", 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), twice)
	MOVL(U32(0x5555), bits)
	KMOVW(bits, firsts)
	floor, always := ZMM(), K()
	VBROADCASTSS(NewParamAddr("floor", backwardFloor), floor)
	VCMPPS(Imm(unordered), floor, floor, always)
	planes([]string{"upper", "lower", "dupper", "dlower"}, []string{"gradient"}, func(x, y []Register, pair [2]segment) {
		row := func(line Register) (best VecVirtual, chosen Register) {
			PREFETCHT0(Mem{Base: line, Index: pair[1].input, Scale: bytes, Disp: passAhead})
			v := sixteen(line, pair)
			even, odd, second := ZMM(), ZMM(), K()
			VMOVSLDUP(v, even)
			VMOVSHDUP(v, odd)
			VCMPPS(Imm(greater), even, odd, second)
			VMAXPS(even, odd, odd)
			KXORW(firsts, second, second) // those that are their pair's maximum
			return odd, second
		}
		upper, upperChosen := row(x[0])
		lower, lowerChosen := row(x[1])
		below, passes := K(), K()
		VCMPPS(Imm(greater), upper, lower, below)
		VMAXPS(upper, lower, lower)
		VCMPPS(Imm(greater), floor, lower, passes)
		KORW(always, passes, passes)
		g := ZMM()
		VMOVUPS(Mem{Base: y[0], Index: pair[0].output, Scale: bytes}, g.AsX())
		VINSERTF128(Imm(1), Mem{Base: y[0], Index: pair[1].output, Scale: bytes}, g.AsY(), g.AsY())
		VPERMPS_Z(g, twice, passes, g)
		KANDNW(upperChosen, below, upperChosen)
		KANDW(lowerChosen, below, lowerChosen)
		for i, chosen := range []Register{upperChosen, lowerChosen} {
			out := ZMM()
			VMOVAPS_Z(g, chosen, out)
			VMOVUPS(out.AsY(), Mem{Base: x[2+i], Index: pair[0].input, Scale: bytes})
			VEXTRACTF32X8(Imm(1), out, Mem{Base: x[2+i], Index: pair[1].input, Scale: bytes})
		}
	})
}
