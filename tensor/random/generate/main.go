// Command generate writes the assembly of package random, in AVX2 or, when asked, AVX-512 (F and DQ). It is a module of its own, so that users
// of Pollen do not depend on the assembler. From this folder:
//
//	go run main.go -out ../normal_avx2_amd64.s -stubs ../normal_avx2_amd64.go -pkg random
//	go run main.go -avx512 -out ../normal_avx512_amd64.s -stubs ../normal_avx512_amd64.go -pkg random
//
// The operations and their order are those of philox and boxMuller in package random, eight or sixteen lanes at a time; a test there compares
// the bits. Each polynomial's coefficients stand in normal.go and here.
package main

import (
	"flag"
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	rounds      = 10
	atOnce      = 3
	bytesAQuad  = 16
	quadsAGroup = 8 // 32 normals
)

// wide says that AVX-512 is written. A set is then the eight quads of a group, else four.
var wide = flag.Bool("avx512", false, "write AVX-512, not AVX2")

func main() {
	flag.Parse()
	ConstraintExpr("!purego")
	suffix := by("AVX2", "AVX512")
	groupsOf("normalGroups"+suffix, "normals", boxMuller)
	groupsOf("uniformGroups"+suffix, "uniforms", uniforms)
	Generate()
}

// by chooses by the instruction set.
func by[T any](avx2, avx512 T) T {
	if *wide {
		return avx512
	}
	return avx2
}

func vectorSize() int { return by(32, 64) }
func quadsASet() int  { return vectorSize() / 8 }
func bytesASet() int  { return quadsASet() * bytesAQuad }

func vector() VecVirtual { return by(YMM, ZMM)() }

// Instructions that have another name where registers are wider, or that read a word, which all lanes share, in another way.
var (
	load       = func(ops ...Op) { by(of2(VMOVDQU), VMOVDQU32)(ops...) }
	loadWord   = func(ops ...Op) { by(of2(VMOVDQU), VPBROADCASTD)(ops...) }
	xor        = func(ops ...Op) { by(of3(VPXOR), VPXORD)(ops...) }
	xorWord    = func(ops ...Op) { by(of3(VPXOR), VPXORD_BCST)(ops...) }
	or         = func(ops ...Op) { by(of3(VPOR), VPORD)(ops...) }
	orWord     = func(ops ...Op) { by(of3(VPOR), VPORD_BCST)(ops...) }
	andWord    = func(ops ...Op) { by(of3(VPAND), VPANDD_BCST)(ops...) }
	andNot     = func(ops ...Op) { by(of3(VPANDN), VPANDND)(ops...) }
	addWord    = func(ops ...Op) { by(VPADDD, VPADDD_BCST)(ops...) }
	times      = func(ops ...Op) { by(VPMULUDQ, VPMULUDQ_BCST)(ops...) }
	andFloat   = func(ops ...Op) { by(VANDPS, VANDPS_BCST)(ops...) }
	orFloat    = func(ops ...Op) { by(VORPS, VORPS_BCST)(ops...) }
	addFloat   = func(ops ...Op) { by(VADDPS, VADDPS_BCST)(ops...) }
	timesFloat = func(ops ...Op) { by(VMULPS, VMULPS_BCST)(ops...) }
)

func of2(instruction func(a, b Op)) func(...Op) {
	return func(ops ...Op) { instruction(ops[0], ops[1]) }
}

func of3(instruction func(a, b, c Op)) func(...Op) {
	return func(ops ...Op) { instruction(ops[0], ops[1], ops[2]) }
}

// choose leaves a in result where the signs of mask are set, and b elsewhere.
func choose(mask, a, b, result VecVirtual) {
	if !*wide {
		VBLENDVPS(mask, a, b, result)
		return
	}
	signs := K()
	VPMOVD2M(mask, signs)
	VBLENDMPS(a, b, signs, result)
}

// groupsOf emits a function: the key schedule, a loop that leaves the words of sets where their numbers will be, and a loop that turns them
// into these. In either loop several iterations are under way at once; one loop for both would be too long for that.
func groupsOf(name, what string, numbers func(sets int, dst Register)) {
	TEXT(name, NOSPLIT, "func(dst *float32, groups int, k0, k1, c0, c1, c2, c3 uint32)")
	Pragma("noescape")
	Doc(name+" writes the "+what+" of 8*groups quads, groups at least 1, to dst. The first has the Philox counter (c0, c1, c2, c3),",
		"the others count c0 up; (k0, k1) is the key.")
	dst := Load(Param("dst"), GP64())
	groups := Load(Param("groups"), GP64())
	shared := newSchedule()

	Comment("The quads of a set lie in such an order that unpacking writes them in the order 0, 1, 2 and so on.")
	first := vector()
	broadcastParam("c0", first)
	VPADDD(quadOffsets(), first, first)
	counter := AllocLocal(vectorSize())
	load(first, counter)

	at := GP64()
	MOVQ(dst, at)
	left := GP64()
	setsOf(groups, left)
	inThrees("words", left, func(sets int) { words(sets, shared, counter, at) })
	setsOf(groups, left)
	inThrees(what, left, func(sets int) { numbers(sets, dst) })
	VZEROUPPER()
	RET()
}

// setsOf counts the sets of some groups.
func setsOf(groups, sets Register) {
	if quadsASet() == quadsAGroup {
		MOVQ(groups, sets)
	} else {
		LEAQ(Mem{Base: groups, Index: groups, Scale: 1}, sets)
	}
}

// inThrees emits loops over the sets that are left: three at once, so that one waits for its operands while the others work, then single ones.
func inThrees(name string, left GPVirtual, body func(sets int)) {
	SUBQ(Imm(atOnce), left)
	JL(LabelRef(name + "_rest"))
	Label(name)
	body(atOnce)
	SUBQ(Imm(atOnce), left)
	JGE(LabelRef(name))
	Label(name + "_rest")
	ADDQ(Imm(atOnce), left)
	JZ(LabelRef(name + "_end"))
	Label(name + "_one")
	body(1)
	DECQ(left)
	JNZ(LabelRef(name + "_one"))
	Label(name + "_end")
}

// words makes the words of some sets, whose rounds alternate, and counts up.
func words(sets int, shared *schedule, counter Mem, at Register) {
	state := make([]*set, sets)
	for i := range state {
		state[i] = newSet(counter, i)
	}
	next := vector()
	loadWord(constant("nextSets", uint32(sets*quadsASet())), next)
	VPADDD(counter, next, next)
	load(next, counter)
	for round := range rounds {
		Commentf("Round %d.", round)
		for _, s := range state {
			switch round {
			case 0:
				s.round0(shared)
			case 1:
				s.round1(shared)
			case 2:
				s.round2(shared)
			default:
				s.round(shared.k0[round], shared.k1[round])
			}
		}
	}
	for i, s := range state {
		w0, w1 := s.words()
		load(w0, Mem{Base: at, Disp: i * bytesASet()})
		load(w1, Mem{Base: at, Disp: i*bytesASet() + vectorSize()})
	}
	ADDQ(U32(uint32(sets*bytesASet())), at)
}

// schedule is what all quads of a call share, on the stack, each in all lanes: the key words of the rounds, and those parts of
// rounds 0, 1 and 2 which do not depend on c0 and need no key words any more.
type schedule struct {
	k0, k1             [rounds]Mem
	c3Round0           Mem // c3 ^ k1 of round 0
	c1Round1, c2Round1 Mem // c1 ^ k0 and hi(M0*c0) ^ k1 of round 1
	c3Round2           Mem // c3 ^ k1 of round 2
}

func newSchedule() *schedule {
	Comment("What the counters share of rounds 0, 1 and 2.")
	s := &schedule{}
	k0, k1, c1, c2, c3, c0 := vector(), vector(), vector(), vector(), vector(), vector()
	broadcastParam("k0", k0)
	broadcastParam("k1", k1)
	broadcastParam("c1", c1)
	broadcastParam("c2", c2)
	broadcastParam("c3", c3)
	nextKeys := func() {
		addWord(constant("philoxW0", 0x9E3779B9), k0, k0)
		addWord(constant("philoxW1", 0xBB67AE85), k1, k1)
	}
	xor(k1, c3, c3)
	s.c3Round0 = store(c3)
	times(constant("philoxM1", 0xCD9E8D57), c2, c2)
	VPSRLQ(Imm(32), c2, c0)
	xor(k0, c1, c1)
	xor(c1, c0, c0)
	nextKeys()
	xor(k0, c2, c2)
	s.c1Round1 = store(c2)
	times(constant("philoxM0", 0xD2511F53), c0, c0)
	VPSRLQ(Imm(32), c0, c2)
	xor(k1, c2, c2)
	s.c2Round1 = store(c2)
	nextKeys()
	xor(k1, c0, c0)
	s.c3Round2 = store(c0)
	s.k0[2] = store(k0)
	Comment("The key words of the other rounds.")
	for round := 3; round < rounds; round++ {
		nextKeys()
		s.k0[round], s.k1[round] = store(k0), store(k1)
	}
	return s
}

// store writes what all quads share to a new place on the stack: a register, or the one word of it that xorWord needs.
func store(from VecVirtual) Mem {
	if *wide {
		m := AllocLocal(8)
		VMOVD(from.AsX(), m)
		return m
	}
	m := AllocLocal(vectorSize())
	VMOVDQU(from, m)
	return m
}

// broadcastParam copies a 32-bit parameter to all lanes.
func broadcastParam(name string, to VecVirtual) {
	word, lane := GP32(), XMM()
	Load(Param(name), word)
	VMOVD(word, lane)
	VPBROADCASTD(lane, to)
}

// set is the Philox state of four or eight quads: four registers, each with one word of each quad in the lower halves of its 64-bit
// lanes, where VPMULUDQ reads it. What the upper halves hold never reaches the lower ones.
type set struct {
	c0, c1, c2, c3 VecVirtual
}

// newSet loads c0, the only word in which quads differ before round 0: counter holds those of set 0.
func newSet(counter Mem, number int) *set {
	s := &set{c0: vector()}
	load(counter, s.c0)
	if number > 0 {
		addWord(constant("nextSets", uint32(number*quadsASet())), s.c0, s.c0)
	}
	return s
}

// round: (c0, c1, c2, c3) <- (hi(M1*c2) ^ c1 ^ k0, lo(M1*c2), hi(M0*c0) ^ c3 ^ k1, lo(M0*c0)).
func (s *set) round(k0, k1 Mem) {
	p0, p1 := s.products()
	if *wide {
		const xorOfThree = 0x96
		VPSRLQ(Imm(32), p1, s.c0)
		VPSRLQ(Imm(32), p0, s.c2)
		VPTERNLOGD_BCST(Imm(xorOfThree), k0, s.c1, s.c0)
		VPTERNLOGD_BCST(Imm(xorOfThree), k1, s.c3, s.c2)
	} else {
		VPXOR(k0, s.c1, s.c1)
		VPXOR(k1, s.c3, s.c3)
		VPSRLQ(Imm(32), p1, s.c0)
		VPSRLQ(Imm(32), p0, s.c2)
		VPXOR(s.c1, s.c0, s.c0)
		VPXOR(s.c3, s.c2, s.c2)
	}
	s.c1, s.c3 = p1, p0
}

func (s *set) products() (p0, p1 VecVirtual) {
	p0, p1 = vector(), vector()
	times(constant("philoxM0", 0xD2511F53), s.c0, p0)
	times(constant("philoxM1", 0xCD9E8D57), s.c2, p1)
	return p0, p1
}

// round0 leaves c0 and c1 alone: they are shared, and used up in schedule.
func (s *set) round0(shared *schedule) {
	s.c2, s.c3 = vector(), s.c0
	times(constant("philoxM0", 0xD2511F53), s.c3, s.c3)
	VPSRLQ(Imm(32), s.c3, s.c2)
	xorWord(shared.c3Round0, s.c2, s.c2)
}

// round1 leaves c3 alone: it is shared, and used up in schedule.
func (s *set) round1(shared *schedule) {
	p1 := vector()
	s.c0 = vector()
	times(constant("philoxM1", 0xCD9E8D57), s.c2, p1)
	VPSRLQ(Imm(32), p1, s.c0)
	xorWord(shared.c1Round1, s.c0, s.c0)
	xorWord(shared.c2Round1, s.c3, s.c2)
	s.c1 = p1
}

func (s *set) round2(shared *schedule) {
	p0, p1 := s.products()
	xorWord(shared.k0[2], s.c1, s.c1)
	VPSRLQ(Imm(32), p1, s.c0)
	VPSRLQ(Imm(32), p0, s.c2)
	xor(s.c1, s.c0, s.c0)
	xorWord(shared.c3Round2, s.c2, s.c2)
	s.c1, s.c3 = p1, p0
}

// words returns, in all 32-bit lanes, words 0 and 2 of the quads (for radius), and words 1 and 3 (for circle).
func (s *set) words() (w0, w1 VecVirtual) {
	odd := oddLanes()
	for _, v := range [][2]VecVirtual{{s.c0, s.c2}, {s.c1, s.c3}} {
		VPSLLQ(Imm(32), v[1], v[1])
		if *wide {
			VMOVDQA32(v[1], odd, v[0])
		} else {
			VPBLENDD(odd, v[1], v[0], v[0])
		}
	}
	return s.c0, s.c1
}

// oddLanes is the mask of every other word.
func oddLanes() Op {
	if !*wide {
		return Imm(0xAA)
	}
	mask, bits := K(), GP32()
	MOVL(U32(0xAAAA), bits)
	KMOVW(bits, mask)
	return mask
}

// uniforms turns the words of some sets at dst into uniforms, with the operations of uniform in package random.
func uniforms(sets int, dst Register) {
	for i := range sets {
		first, second := Mem{Base: dst, Disp: i * bytesASet()}, Mem{Base: dst, Disp: i*bytesASet() + vectorSize()}
		even, odd, low := vector(), vector(), vector()
		load(first, even)
		load(second, odd)
		VPUNPCKLDQ(odd, even, low)
		VPUNPCKHDQ(odd, even, even)
		for _, v := range []VecVirtual{low, even} {
			VPSRLD(Imm(8), v, v)
			addWord(constant("one", 1), v, v)
			VCVTDQ2PS(v, v)
			timesFloat(constantFloat("uniformScale", 0x1p-24), v, v)
		}
		VMOVUPS(low, first)
		VMOVUPS(even, second)
	}
	ADDQ(U32(uint32(sets*bytesASet())), dst)
}

// boxMuller turns the words of some sets at dst into normals. The instructions of the sets alternate in short runs.
func boxMuller(sets int, dst Register) {
	radii, circles := make([]*radius, sets), make([]*circle, sets)
	for i := range sets {
		radii[i] = &radius{words: Mem{Base: dst, Disp: i * bytesASet()}}
		circles[i] = &circle{words: Mem{Base: dst, Disp: i*bytesASet() + vectorSize()}}
	}
	Comment("The radii.")
	for step := range radii[0].steps() {
		for _, r := range radii {
			r.steps()[step]()
		}
	}
	Comment("The cosines and sines.")
	for step := range circles[0].steps() {
		for _, c := range circles {
			c.steps()[step]()
		}
	}
	Comment("The products, in the order of the elements.")
	for i, c := range circles {
		r := radii[i]
		VMULPS(r.square, c.cosine, c.cosine)
		VMULPS(r.square, c.sine, c.sine)
		low := vector()
		VUNPCKLPS(c.sine, c.cosine, low)
		VUNPCKHPS(c.sine, c.cosine, c.cosine)
		VMOVUPS(low, Mem{Base: dst, Disp: i * bytesASet()})
		VMOVUPS(c.cosine, Mem{Base: dst, Disp: i*bytesASet() + vectorSize()})
	}
	ADDQ(U32(uint32(sets*bytesASet())), dst)
}

// radius computes sqrt(-2 ln((word|1) / 2^32)) with the operations of radius in package random.
type radius struct {
	words         Mem
	g, g2, square VecVirtual
}

func (r *radius) steps() []func() {
	return []func(){r.mantissa, r.low, r.high, r.root}
}

// float is the word as a number, and, in the upper half of words, all ones.
func (r *radius) float() (x, upper VecVirtual) {
	x, upper = vector(), vector()
	loadWord(constant("one", 1), upper)
	or(r.words, upper, upper)
	VCVTDQ2PS(upper, x)
	VPSRAD(Imm(31), upper, upper)
	return x, upper
}

// mantissa: g, from the mantissa in the lower half, from the whole word in the upper.
func (r *radius) mantissa() {
	x, high := r.float()
	r.g, r.g2 = vector(), vector()
	andFloat(constant("mantissa", 0x007fffff), x, r.g)
	orFloat(constantFloat("minusHalf", -0.5), r.g, r.g)
	addFloat(constantFloat("oneFloat", 1), r.g, r.g)
	timesFloat(constantFloat("minusScale", -0x1p-32), x, high)
	choose(x, high, r.g, r.g)
	VMULPS(r.g, r.g, r.g2)
}

// low and high: 2 g + g^2 (radius0 + ...).
func (r *radius) low() {
	r.square = cubic("radius", r.g, r.g2, 0x1.fffecp-1, 0x1.55a384p-1, 0x1.f313e6p-2, 0x1.0df6cap-1)
}

func (r *radius) high() {
	high := cubic("radius", r.g, r.g2, -0x1.72285ep-2, 0x1.354ff6p+1, -0x1.a3993p+1, 0x1.6a0f48p+1)
	g4 := vector()
	VMULPS(r.g2, r.g2, g4)
	VMULPS(g4, high, high)
	VADDPS(high, r.square, r.square)
	VMULPS(r.g2, r.square, r.square)
	VADDPS(r.g, r.g, r.g)
	VADDPS(r.g, r.square, r.square)
}

// root: k = 158 - exponent in the lower half, 0 in the upper; here -k, times -2 ln 2.
func (r *radius) root() {
	k, upper := r.float()
	VPSRLD(Imm(23), k, k)
	addWord(constant("minus158", 1<<32-158), k, k)
	andNot(k, upper, k)
	VCVTDQ2PS(k, k)
	timesFloat(constantFloat("minusTwoLn2", -0x1.62e43p+0), k, k)
	VADDPS(k, r.square, r.square)
	VSQRTPS(r.square, r.square)
}

// circle computes the cosine and the sine of 2 pi (word + 1/2) / 2^32 with the operations of circle in package random.
type circle struct {
	words              Mem
	t, v, cosine, sine VecVirtual
}

func (c *circle) steps() []func() {
	return []func(){c.reduce, c.polynomials, c.quadrant}
}

func (c *circle) reduce() {
	c.t, c.v = vector(), vector()
	load(c.words, c.t)
	VPSLLD(Imm(2), c.t, c.t)
	orWord(constant("two", 2), c.t, c.t)
	VCVTDQ2PS(c.t, c.t)
	timesFloat(constantFloat("scale", 0x1p-32), c.t, c.t)
	VMULPS(c.t, c.t, c.v)
}

func (c *circle) polynomials() {
	v2 := vector()
	VMULPS(c.v, c.v, v2)
	c.sine = cubic("sine", c.v, v2, 0x1.921fb6p+0, -0x1.4abc24p-1, 0x1.4680a4p-4, -0x1.33198ep-8)
	c.cosine = cubic("cosine", c.v, v2, -0x1.3bd3ccp+0, 0x1.03c1bp-2, -0x1.55b2b6p-6, 0x1.d4f7eep-11)
	VMULPS(c.t, c.sine, c.sine)
	VMULPS(c.v, c.cosine, c.cosine)
	addFloat(constantFloat("oneFloat", 1), c.cosine, c.cosine)
}

// quadrant exchanges and negates.
func (c *circle) quadrant() {
	word, odd, sign, z := vector(), vector(), vector(), vector()
	loadWord(constant("halfQuadrant", 1<<29), word)
	VPADDD(c.words, word, word)
	VPSLLD(Imm(1), word, odd)
	choose(odd, c.sine, c.cosine, z)
	choose(odd, c.cosine, c.sine, c.sine)
	addWord(constant("quadrant", 1<<30), word, sign)
	andWord(constant("sign", 1<<31), sign, sign)
	VXORPS(sign, z, z)
	andWord(constant("sign", 1<<31), word, word)
	VXORPS(word, c.sine, c.sine)
	c.cosine = z
}

// cubic evaluates (a0 + a1 x) + (a2 + a3 x) x2, x2 being the square of x.
func cubic(name string, x, x2 VecVirtual, a0, a1, a2, a3 float32) VecVirtual {
	low, high := vector(), vector()
	timesFloat(constantFloat(name, a1), x, low)
	timesFloat(constantFloat(name, a3), x, high)
	addFloat(constantFloat(name, a0), low, low)
	addFloat(constantFloat(name, a2), high, high)
	VMULPS(x2, high, high)
	VADDPS(high, low, low)
	return low
}

func constantFloat(name string, value float32) Mem {
	return constant(name, math.Float32bits(value))
}

var constants = map[uint32]Mem{}

// constant returns a vector with the value in each 32-bit lane, or two lanes, of which instructions of AVX-512 make a vector. Equal values share
// one, with the name that came first.
func constant(name string, value uint32) Mem {
	if m, ok := constants[value]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("%s_%08x%s", name, value, by("", "_512")), attr.RODATA|attr.NOPTR)
	for lane := range by(vectorSize()/4, 2) {
		DATA(4*lane, U32(value))
	}
	constants[value] = m
	return m
}

// offsets is the number of each lane's quad relative to the first of a set.
var offsets Mem

func quadOffsets() Mem {
	if offsets.Symbol.Name == "" {
		offsets = GLOBL("quadOffsets"+by("", "_512"), attr.RODATA|attr.NOPTR)
		for lane, quad := range by([]uint64{0, 2, 1, 3}, []uint64{0, 4, 1, 5, 2, 6, 3, 7}) {
			DATA(8*lane, U64(quad))
		}
	}
	return offsets
}
