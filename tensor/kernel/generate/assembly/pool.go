package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// segment is four outputs of a line and what they are made of.
type segment struct{ input, output GPVirtual }

// planes writes a loop over planes and, in each, over pairs of segments, whose places in x and y the parameter table holds: inputs, then
// outputs. The parameters x and y name the sides; others of their kind move along.
func planes(x, y []string, body func(inputs, outputs []Register, pair [2]segment)) {
	var inputs, outputs []Register
	for _, name := range x {
		inputs = append(inputs, Load(Param(name), GP64()))
	}
	for _, name := range y {
		outputs = append(outputs, Load(Param(name), GP64()))
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
	body(inputs, outputs, pair)
	ADDQ(Imm(4*bytes), table)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	for side, registers := range [][]Register{inputs, outputs} {
		step := loadBytes([]string{"xPlane", "yPlane"}[side])
		for _, r := range registers {
			ADDQ(step, r)
		}
	}
	left := GP64()
	MOVQ(NewParamAddr("planes", planesOffset(len(x)+len(y))), left)
	DECQ(left)
	MOVQ(left, NewParamAddr("planes", planesOffset(len(x)+len(y))))
	JNZ(LabelRef("plane"))
	VZEROUPPER()
	RET()
}

// planesOffset is where the parameter planes lies after that many pointers and the table: it counts down in place.
func planesOffset(pointers int) int { return 8 * (pointers + 2) }

// Predicates of comparisons: of those that are false for NaN, and of whether one is.
const (
	greater   = 0x1e
	unordered = 3
)

// backwardFloor is where the parameter floor of maxPlanesBackward lies, behind five pointers.
const backwardFloor = 8 * (5 + 5)

// two loads the sixteen inputs of a pair of segments, of the lines at line.
func two(line Register, pair [2]segment) [2]VecVirtual {
	v := [2]VecVirtual{YMM(), YMM()}
	for h := range v {
		VMOVUPS(Mem{Base: line, Index: pair[h].input, Scale: bytes}, v[h])
	}
	return v
}

// maximum returns the greater of a and b in each place, or NaN where one is.
func maximum(a, b VecVirtual) VecVirtual {
	result, isNaN := YMM(), YMM()
	VMAXPS(b, a, result) // b where one is NaN
	VCMPPS(Imm(unordered), a, a, isNaN)
	VBLENDVPS(isNaN, a, result, result)
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

// maxPlanes writes the forward pass of 2 x 2 maximum pooling. The lines of x below upper are the parameter lower.
func maxPlanes() {
	TEXT("maxPlanesAVX2", NOSPLIT, "func(upper, lower, y *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)")
	Pragma("noescape")
	Doc("maxPlanesAVX2 is maxPlanes.")
	floor := YMM()
	VBROADCASTSS(NewParamAddr("floor", 64), floor)
	planes([]string{"upper", "lower"}, []string{"y"}, func(x, y []Register, pair [2]segment) {
		u, l := two(x[0], pair), two(x[1], pair)
		even, odd := evenOdd([2]VecVirtual{maximum(u[0], l[0]), maximum(u[1], l[1])})
		result := maximum(even, odd)
		VMAXPS(result, floor, result) // result where it is NaN
		VPERMPD(Imm(0xd8), result, result)
		VMOVUPS(result.AsX(), Mem{Base: y[0], Index: pair[0].output, Scale: bytes})
		VEXTRACTF128(Imm(1), result, Mem{Base: y[0], Index: pair[1].output, Scale: bytes})
	})
}

// maxPlanesBackward writes the backward pass of 2 x 2 maximum pooling.
func maxPlanesBackward() {
	TEXT("maxPlanesBackwardAVX2", NOSPLIT, "func(upper, lower, dupper, dlower, gradient *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)")
	Pragma("noescape")
	Doc("maxPlanesBackwardAVX2 is maxPlanesBackward.")
	floor, always := YMM(), YMM()
	VBROADCASTSS(NewParamAddr("floor", backwardFloor), floor)
	VCMPPS(Imm(unordered), floor, floor, always)
	planes([]string{"upper", "lower", "dupper", "dlower"}, []string{"gradient"}, func(x, y []Register, pair [2]segment) {
		// row returns the greater of each two neighbours and whether it is the
		// second.
		row := func(line Register) (best, second VecVirtual) {
			even, odd := evenOdd(two(line, pair))
			best, second = YMM(), YMM()
			VCMPPS(Imm(greater), even, odd, second)
			VMAXPS(even, odd, best)
			return best, second
		}
		upperBest, upperSecond := row(x[0])
		lowerBest, lowerSecond := row(x[1])
		below := YMM()
		VCMPPS(Imm(greater), upperBest, lowerBest, below)
		g := YMM()
		VMOVUPS(Mem{Base: y[0], Index: pair[0].output, Scale: bytes}, g.AsX())
		VINSERTF128(Imm(1), Mem{Base: y[0], Index: pair[1].output, Scale: bytes}, g, g)
		VPERMPD(Imm(0xd8), g, g)
		passes := YMM()
		VMAXPS(upperBest, lowerBest, passes)
		VCMPPS(Imm(greater), floor, passes, passes)
		VORPS(always, passes, passes)
		VANDPS(passes, g, g)
		store := func(line Register, part, second VecVirtual) {
			even, odd, out := YMM(), YMM(), YMM()
			VANDNPS(part, second, even)
			VANDPS(part, second, odd)
			VUNPCKLPS(odd, even, out)
			VMOVUPS(out, Mem{Base: line, Index: pair[0].input, Scale: bytes})
			VUNPCKHPS(odd, even, out)
			VMOVUPS(out, Mem{Base: line, Index: pair[1].input, Scale: bytes})
		}
		part := YMM()
		VANDNPS(g, below, part)
		store(x[2], part, upperSecond)
		VANDPS(g, below, part)
		store(x[3], part, lowerSecond)
	})
}
