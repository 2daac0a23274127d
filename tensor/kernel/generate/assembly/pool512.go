package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// sixteen loads the inputs of a pair of segments from the given line into one vector.
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

// numbers returns a vector of integers in memory.
func numbers(name string, values ...uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, v := range values {
		DATA(i*bytes, U32(v))
	}
	return m
}

// maxPlanes512 writes maxPlanes with both segments of a pair in one vector.
func maxPlanes512() {
	TEXT("maxPlanesAVX512", NOSPLIT, "func(upper, lower, y *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)")
	Pragma("noescape")
	Doc("maxPlanesAVX512 is maxPlanes.")
	floor, evens := ZMM(), ZMM()
	VBROADCASTSS(NewParamAddr("floor", 64), floor)
	VMOVUPS(numbers("evenThenOdd", 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15), evens)
	planes([]string{"upper", "lower"}, []string{"y"}, "", func(x, y []Register, _ Register, pair [2]segment) {
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

// notePlaces512 writes notePlaces with both segments of a pair in one vector, in which two
// neighbouring lanes both hold the index.
func notePlaces512() {
	TEXT("notePlacesAVX512", NOSPLIT, "func(upper, lower *float32, places *uint8, table *int32, pairs, planes, xPlane, yPlane int)")
	Pragma("noescape")
	Doc("notePlacesAVX512 is notePlaces.")
	one, two, four, zero := number512(1), number512(2), number512(4), ZMM()
	VPXORD(zero, zero, zero)
	planes([]string{"upper", "lower"}, nil, "places", func(x, _ []Register, places Register, pair [2]segment) {
		row := func(line Register) (best VecVirtual, second Register) {
			v := sixteen(line, pair)
			even, odd, second := ZMM(), ZMM(), K()
			VMOVSLDUP(v, even)
			VMOVSHDUP(v, odd)
			VCMPPS(Imm(greater), even, odd, second)
			VMAXPS(even, odd, odd)
			return odd, second
		}
		upper, upperSecond := row(x[0])
		lower, lowerSecond := row(x[1])
		below, rest, place := K(), K(), ZMM()
		VCMPPS(Imm(greater), upper, lower, below)
		VMAXPS(upper, lower, lower)
		VCMPPS(Imm(notGreater), zero, lower, rest)
		KANDNW(upperSecond, below, upperSecond)
		KANDW(lowerSecond, below, lowerSecond)
		KORW(upperSecond, lowerSecond, lowerSecond)
		VMOVDQA32_Z(one, lowerSecond, place)
		VPORD(two, place, below, place)
		VPORD(four, place, rest, place)
		narrow := XMM()
		VPMOVQB(place, narrow)
		VMOVD(narrow, Mem{Base: places, Index: pair[0].output, Scale: 1})
		VPEXTRD(Imm(1), narrow, Mem{Base: places, Index: pair[1].output, Scale: 1})
	})
}

// number512 broadcasts an integer to all lanes.
func number512(value uint32) VecVirtual {
	v, word := ZMM(), GP32()
	MOVL(U32(value), word)
	VPBROADCASTD(word, v)
	return v
}

// spreadPlaces512 writes spreadPlaces with the two segments of a pair in one vector.
func spreadPlaces512() {
	TEXT("spreadPlacesAVX512", NOSPLIT, "func(dupper, dlower, gradient *float32, places *uint8, table *int32, pairs, planes, xPlane, yPlane int, mask uint32)")
	Pragma("noescape")
	Doc("spreadPlacesAVX512 is spreadPlaces.")
	twice, mask := ZMM(), ZMM()
	VMOVUPS(numbers("eachTwice", 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7), twice)
	VPBROADCASTD(Load(Param("mask"), GP32()), mask)
	of := [2]VecVirtual{ZMM(), ZMM()}
	VMOVUPS(numbers("ofUpper", 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1), of[0])
	VMOVUPS(numbers("ofLower", 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3), of[1])
	planes([]string{"dupper", "dlower"}, []string{"gradient"}, "places", func(x, y []Register, places Register, pair [2]segment) {
		place, g := ZMM(), ZMM()
		VMOVD(Mem{Base: places, Index: pair[0].output, Scale: 1}, place.AsX())
		VPINSRD(Imm(1), Mem{Base: places, Index: pair[1].output, Scale: 1}, place.AsX(), place.AsX())
		VPMOVZXBD(place.AsX(), place.AsY())
		VPERMD(place, twice, place)
		VPANDD(mask, place, place)
		VMOVUPS(Mem{Base: y[0], Index: pair[0].output, Scale: bytes}, g.AsX())
		VINSERTF128(Imm(1), Mem{Base: y[0], Index: pair[1].output, Scale: bytes}, g.AsY(), g.AsY())
		VPERMPS(g, twice, g)
		for i, line := range x {
			out, chosen := ZMM(), K()
			VPCMPEQD(of[i], place, chosen)
			VMOVAPS_Z(g, chosen, out)
			VMOVUPS(out.AsY(), Mem{Base: line, Index: pair[0].input, Scale: bytes})
			VEXTRACTF32X8(Imm(1), out, Mem{Base: line, Index: pair[1].input, Scale: bytes})
		}
	})
}
