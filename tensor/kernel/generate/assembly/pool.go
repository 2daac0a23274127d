package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// segment holds the offsets of four outputs of a line and of their inputs.
type segment struct{ input, output GPVirtual }

// planes writes a loop over planes and, within each, over pairs of segments, whose offsets in x and
// y are in the parameter table: inputs, then outputs. The names in x and y are parameters that
// advance by the input and output planes; notes, if not empty, is a parameter for outputs of one
// byte each.
func planes(x, y []string, notes string, body func(inputs, outputs []Register, notes Register, pair [2]segment)) {
	var inputs, outputs []Register
	for _, name := range x {
		inputs = append(inputs, Load(Param(name), GP64()))
	}
	for _, name := range y {
		outputs = append(outputs, Load(Param(name), GP64()))
	}
	pointers := len(x) + len(y)
	var noted Register
	if notes != "" {
		noted = Load(Param(notes), GP64())
		pointers++
	}
	Label("plane")
	table, pairs := Load(Param("table"), GP64()), Load(Param("pairs"), GP64())
	Label("pair")
	var pair [2]segment
	for h := range pair {
		pair[h] = segment{GP64(), GP64()}
		MOVLQSX(Mem{Base: table, Disp: h * bytes}, pair[h].input)
		MOVLQSX(Mem{Base: table, Disp: (2 + h) * bytes}, pair[h].output)
	}
	body(inputs, outputs, noted, pair)
	ADDQ(Imm(4*bytes), table)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	for side, registers := range [][]Register{inputs, outputs} {
		step := loadBytes([]string{"xPlane", "yPlane"}[side])
		for _, r := range registers {
			ADDQ(step, r)
		}
	}
	if notes != "" {
		ADDQ(loadNumber("yPlane"), noted)
	}
	left := GP64()
	MOVQ(NewParamAddr("planes", planesOffset(pointers)), left)
	DECQ(left)
	MOVQ(left, NewParamAddr("planes", planesOffset(pointers)))
	JNZ(LabelRef("plane"))
	VZEROUPPER()
	RET()
}

// planesOffset returns the offset of the parameter planes, after the given number of pointers and
// the table. It is counted down in place.
func planesOffset(pointers int) int { return 8 * (pointers + 2) }

// Predicates of VCMPPS: a is greater; a is not greater, or one is NaN; one is NaN.
const (
	greater    = 0x1e
	notGreater = 0x0a
	unordered  = 3
)

// inputs loads the sixteen inputs of a pair of segments from the given line.
func inputs(line Register, pair [2]segment) [2]VecVirtual {
	v := [2]VecVirtual{YMM(), YMM()}
	for h := range v {
		VMOVUPS(Mem{Base: line, Index: pair[h].input, Scale: bytes}, v[h])
	}
	return v
}

// maximum returns the maximum of a and b in each lane, or NaN if one is NaN.
func maximum(a, b VecVirtual) VecVirtual {
	result, isNaN := YMM(), YMM()
	VMAXPS(b, a, result) // b where one is NaN
	VCMPPS(Imm(unordered), a, a, isNaN)
	VBLENDVPS(isNaN, a, result, result)
	return result
}

// evenOdd separates sixteen elements into even and odd ones, each in the order 0 1 4 5 2 3 6 7.
func evenOdd(v [2]VecVirtual) (even, odd VecVirtual) {
	even, odd = YMM(), YMM()
	VSHUFPS(Imm(0x88), v[1], v[0], even)
	VSHUFPS(Imm(0xdd), v[1], v[0], odd)
	return even, odd
}

// maxPlanes writes the forward pass of 2 x 2 max pooling. upper and lower point to the upper and
// lower lines of the windows.
func maxPlanes() {
	TEXT("maxPlanesAVX2", NOSPLIT, "func(upper, lower, y *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)")
	Pragma("noescape")
	Doc("maxPlanesAVX2 is maxPlanes.")
	floor := YMM()
	VBROADCASTSS(NewParamAddr("floor", 64), floor)
	planes([]string{"upper", "lower"}, []string{"y"}, "", func(x, y []Register, _ Register, pair [2]segment) {
		u, l := inputs(x[0], pair), inputs(x[1], pair)
		even, odd := evenOdd([2]VecVirtual{maximum(u[0], l[0]), maximum(u[1], l[1])})
		result := maximum(even, odd)
		VMAXPS(result, floor, result) // result where it is NaN
		VPERMPD(Imm(0xd8), result, result)
		VMOVUPS(result.AsX(), Mem{Base: y[0], Index: pair[0].output, Scale: bytes})
		VEXTRACTF128(Imm(1), result, Mem{Base: y[0], Index: pair[1].output, Scale: bytes})
	})
}

// notePlaces writes the index of the first maximum of each 2 x 2 window (MaxIndices).
func notePlaces() {
	TEXT("notePlacesAVX2", NOSPLIT, "func(upper, lower *float32, places *uint8, table *int32, pairs, planes, xPlane, yPlane int)")
	Pragma("noescape")
	Doc("notePlacesAVX2 is notePlaces.")
	one, two, four, zero := number(1), number(2), number(4), YMM()
	VXORPS(zero, zero, zero)
	planes([]string{"upper", "lower"}, nil, "places", func(x []Register, _ []Register, places Register, pair [2]segment) {
		row := func(line Register) (best, second VecVirtual) {
			even, odd := evenOdd(inputs(line, pair))
			best, second = YMM(), YMM()
			VCMPPS(Imm(greater), even, odd, second)
			VMAXPS(even, odd, best)
			return best, second
		}
		upper, upperSecond := row(x[0])
		lower, lowerSecond := row(x[1])
		below, above := YMM(), YMM()
		VCMPPS(Imm(greater), upper, lower, below)
		VMAXPS(upper, lower, lower)
		VCMPPS(Imm(greater), zero, lower, above)
		place := upperSecond
		VBLENDVPS(below, lowerSecond, upperSecond, place)
		VANDPS(one, place, place)
		VANDPS(two, below, below)
		VANDNPS(four, above, above)
		VORPS(below, place, place)
		VORPS(above, place, place)
		VPERMQ(Imm(0xd8), place, place)
		high := XMM()
		VEXTRACTI128(Imm(1), place, high)
		VPACKSSDW(high, place.AsX(), high)
		VPACKUSWB(high, high, high)
		VMOVD(high, Mem{Base: places, Index: pair[0].output, Scale: 1})
		VPEXTRD(Imm(1), high, Mem{Base: places, Index: pair[1].output, Scale: 1})
	})
}

// number broadcasts an integer to all lanes.
func number(value uint32) VecVirtual {
	word := GP32()
	MOVL(U32(value), word)
	return inLanes(word)
}

func inLanes(word Register) VecVirtual {
	v := YMM()
	VMOVD(word, v.AsX())
	VPBROADCASTD(v.AsX(), v)
	return v
}

// spreadPlaces writes the gradient of the maxima from their indices (UnpoolGrad). mask selects the
// bits of an index that count.
func spreadPlaces() {
	TEXT("spreadPlacesAVX2", NOSPLIT, "func(dupper, dlower, gradient *float32, places *uint8, table *int32, pairs, planes, xPlane, yPlane int, mask uint32)")
	Pragma("noescape")
	Doc("spreadPlacesAVX2 is spreadPlaces.")
	mask := inLanes(Load(Param("mask"), GP32()))
	var of [4]VecVirtual
	for i := range of {
		of[i] = number(uint32(i))
	}
	planes([]string{"dupper", "dlower"}, []string{"gradient"}, "places", func(x, y []Register, places Register, pair [2]segment) {
		place, g := YMM(), YMM()
		VMOVD(Mem{Base: places, Index: pair[0].output, Scale: 1}, place.AsX())
		VPINSRD(Imm(1), Mem{Base: places, Index: pair[1].output, Scale: 1}, place.AsX(), place.AsX())
		VPMOVZXBD(place.AsX(), place)
		VPAND(mask, place, place)
		VPERMQ(Imm(0xd8), place, place)
		VMOVUPS(Mem{Base: y[0], Index: pair[0].output, Scale: bytes}, g.AsX())
		VINSERTF128(Imm(1), Mem{Base: y[0], Index: pair[1].output, Scale: bytes}, g, g)
		VPERMPD(Imm(0xd8), g, g)
		for i, line := range x {
			even, odd, out := YMM(), YMM(), YMM()
			VPCMPEQD(of[2*i], place, even)
			VPCMPEQD(of[2*i+1], place, odd)
			VANDPS(g, even, even)
			VANDPS(g, odd, odd)
			VUNPCKLPS(odd, even, out)
			VMOVUPS(out, Mem{Base: line, Index: pair[0].input, Scale: bytes})
			VUNPCKHPS(odd, even, out)
			VMOVUPS(out, Mem{Base: line, Index: pair[1].input, Scale: bytes})
		}
	})
}
