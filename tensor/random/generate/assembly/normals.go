package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// uniforms turns the words of some sets at dst into uniforms, with the operations of uniform in
// package random.
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

// mantissas holds, in AVX-512, the mask of the mantissa in all lanes.
var mantissas VecVirtual

// boxMullers prepares the constants that all sets share.
func boxMullers() {
	if wide {
		mantissas = vector()
		loadWord(constant("mantissa", 0x007fffff), mantissas)
	}
}

// boxMuller turns the words of some sets at dst into normals. The instructions of the sets
// alternate in short runs.
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

	x     VecVirtual // in AVX-512, the words as numbers
	lower Register   // in AVX-512, the mask of words in the lower half
}

func (r *radius) steps() []func() {
	return []func(){r.mantissa, r.low, r.high, r.root}
}

// float returns word|1 as a float32, and a mask of the words in the upper half: all ones in AVX2,
// the sign bit of word|1 in AVX-512.
func (r *radius) float() (x, upper VecVirtual) {
	x, upper = vector(), vector()
	loadWord(constant("one", 1), upper)
	or(r.words, upper, upper)
	VCVTDQ2PS(upper, x)
	if !wide {
		VPSRAD(Imm(31), upper, upper)
	}
	return x, upper
}

// mantissa computes g: from the mantissa in the lower half of words, from the whole word in the
// upper half.
func (r *radius) mantissa() {
	x, high := r.float()
	r.g, r.g2 = vector(), vector()
	if wide {
		r.x, r.lower = x, K()
		VPTESTNMD_BCST(constant("sign", 1<<31), high, r.lower)
		VMOVDQA32(mantissas, high)
		const andOr = 0xea // (a and b) or c
		VPTERNLOGD_BCST(Imm(andOr), constantFloat("minusHalf", -0.5), x, high)
		timesFloat(constantFloat("minusScale", -0x1p-32), x, r.g)
		VADDPS_BCST(constantFloat("oneFloat", 1), high, r.lower, r.g)
	} else {
		andFloat(constant("mantissa", 0x007fffff), x, r.g)
		orFloat(constantFloat("minusHalf", -0.5), r.g, r.g)
		addFloat(constantFloat("oneFloat", 1), r.g, r.g)
		timesFloat(constantFloat("minusScale", -0x1p-32), x, x)
		VBLENDVPS(high, x, r.g, r.g)
	}
	VMULPS(r.g, r.g, r.g2)
}

// low and high compute 2 g + g^2 (radius0 + ...).
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
	if wide { // 2 g is exact, so the fused sum rounds as the other one does
		VFMADD231PS_BCST(constantFloat("twoFloat", 2), r.g, r.square)
		return
	}
	VADDPS(r.g, r.g, r.g)
	VADDPS(r.g, r.square, r.square)
}

// root adds 2 k ln 2, where k is 158 - exponent in the lower half of words and 0 in the upper half,
// and takes the square root. The code computes -k and multiplies it by -2 ln 2.
func (r *radius) root() {
	k := r.x
	if wide { // the exponent without its bias of 127
		VGETEXPPS(r.x, k)
		VADDPS_BCST_Z(constantFloat("minus31", -31), k, r.lower, k)
	} else {
		x, upper := r.float()
		k = x
		VPSRLD(Imm(23), k, k)
		addWord(constant("minus158", 1<<32-158), k, k)
		andNot(k, upper, k)
		VCVTDQ2PS(k, k)
	}
	timesFloat(constantFloat("minusTwoLn2", -0x1.62e43p+0), k, k)
	VADDPS(k, r.square, r.square)
	VSQRTPS(r.square, r.square)
}

// circle computes the cosine and the sine of 2 pi (word + 1/2) / 2^32 with the operations of circle
// in package random.
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

// quadrant swaps and negates the cosine and the sine according to the quadrant.
func (c *circle) quadrant() {
	word, sign, z := vector(), vector(), vector()
	loadWord(constant("halfQuadrant", 1<<29), word)
	VPADDD(c.words, word, word)
	addWord(constant("quadrant", 1<<30), word, sign)
	if wide {
		odd := K()
		VPTESTMD_BCST(constant("quadrant", 1<<30), word, odd)
		VBLENDMPS(c.sine, c.cosine, odd, z)
		VBLENDMPS(c.cosine, c.sine, odd, c.sine)
		const xorAnd = 0x78 // a xor (b and c)
		VPTERNLOGD_BCST(Imm(xorAnd), constant("sign", 1<<31), sign, z)
		VPTERNLOGD_BCST(Imm(xorAnd), constant("sign", 1<<31), word, c.sine)
	} else {
		odd := vector()
		VPSLLD(Imm(1), word, odd)
		VBLENDVPS(odd, c.sine, c.cosine, z)
		VBLENDVPS(odd, c.cosine, c.sine, c.sine)
		andWord(constant("sign", 1<<31), sign, sign)
		VXORPS(sign, z, z)
		andWord(constant("sign", 1<<31), word, word)
		VXORPS(word, c.sine, c.sine)
	}
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
