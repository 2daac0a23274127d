package random

import (
	"math"

	"github.com/pkg/errors"
)

// BlockSize is the number of normals in the block that NormalBlock fills. It is large enough to
// hide the cost of the key schedule and of the end of a call, where the assembly processes fewer
// numbers at a time.
const BlockSize = 1024

// The polynomials of boxMuller are minimax fits (Remez exchange, leading coefficients rounded to
// float32 first and the others fitted again), in ascending powers. Relative errors before the
// arithmetic's rounding: radius 2.4e-8, sine 2.8e-8, cosine 4.4e-10.
const (
	// -2 ln(1-g) = 2 g + g^2 (radius0 + radius1 g + ...) on [0, 1/2].
	radius0 = 0x1.fffecp-1
	radius1 = 0x1.55a384p-1
	radius2 = 0x1.f313e6p-2
	radius3 = 0x1.0df6cap-1
	radius4 = -0x1.72285ep-2
	radius5 = 0x1.354ff6p+1
	radius6 = -0x1.a3993p+1
	radius7 = 0x1.6a0f48p+1

	// sin(pi/2 t) = t (sine0 + sine1 t^2 + ...) on [-1/2, 1/2].
	sine0 = 0x1.921fb6p+0
	sine1 = -0x1.4abc24p-1
	sine2 = 0x1.4680a4p-4
	sine3 = -0x1.33198ep-8

	// cos(pi/2 t) = 1 + t^2 (cosine0 + cosine1 t^2 + ...) on [-1/2, 1/2].
	cosine0 = -0x1.3bd3ccp+0
	cosine1 = 0x1.03c1bp-2
	cosine2 = -0x1.55b2b6p-6
	cosine3 = 0x1.d4f7eep-11

	twoLn2 = 0x1.62e43p+0
)

// boxMuller turns two words into two independent standard normals (Box and Muller 1958):
//
//	u  = (w0|1) / 2^32,  v = (w1 + 1/2) / 2^32
//	z0 = sqrt(-2 ln u) cos(2 pi v),  z1 = sqrt(-2 ln u) sin(2 pi v)
//
// u is at least 2^-32, so |z| is at most sqrt(64 ln 2) = 6.66. The relative error of each normal is
// below 3e-7, whatever its size.
//
// Every operation below is one float32 or one 32-bit integer operation. A conversion float32(x*y)
// prevents the compiler from fusing the product with a sum. Other implementations must keep the
// order of operations.
func boxMuller(w0, w1 uint32) (z0, z1 float32) {
	r := radius(w0)
	c, s := circle(w1)
	return float32(r * c), float32(r * s)
}

// radius returns sqrt(-2 ln((word|1) / 2^32)).
//
// With u = 2^-k (1-g), 0 < g <= 1/2, all terms of -2 ln u = k 2 ln 2 - 2 ln(1-g) are positive:
// nothing cancels, and the relative error is as small for u near 1 as for u near 0. A word of the
// upper half, as a signed integer, is 2^32 (u-1): k is 0 and g needs no subtraction. For a word of
// the lower half, k and 1-g are the exponent and the mantissa of its float32.
func radius(word uint32) float32 {
	n := int32(word | 1)
	x := float32(n)
	bits := math.Float32bits(x)
	upper := uint32(n >> 31)
	k := float32(int32((158 - bits>>23) &^ upper))
	lower := 1 - math.Float32frombits(bits&0x007fffff|0x3f000000)
	g := selectBits(upper, x*-0x1p-32, lower)

	g2 := g * g
	g4 := g2 * g2
	low := (float32(radius1*g) + radius0) + float32((float32(radius3*g)+radius2)*g2)
	high := (float32(radius5*g) + radius4) + float32((float32(radius7*g)+radius6)*g2)
	p := low + float32(high*g4)
	square := float32(k*twoLn2) + ((g + g) + float32(p*g2))
	return float32(math.Sqrt(float64(square)))
}

// circle returns the cosine and the sine of 2 pi (word + 1/2) / 2^32.
//
// The reduction is exact integer arithmetic: the angle is pi/2 (quadrant + t), with the quadrant
// rounded to nearest and t = int32(4 word + 2) / 2^32 in [-1/2, 1/2).
func circle(word uint32) (cosine, sine float32) {
	t := float32(int32(word<<2|2)) * 0x1p-32
	v := t * t

	v2 := v * v
	s := (float32(sine1*v) + sine0) + float32((float32(sine3*v)+sine2)*v2)
	c := (float32(cosine1*v) + cosine0) + float32((float32(cosine3*v)+cosine2)*v2)
	s = float32(s * t)
	c = float32(c*v) + 1

	// Bits 31 and 30 are the quadrant. Odd quadrants swap sine and cosine; 1 and 2 negate the
	// cosine, 2 and 3 the sine.
	quadrant := word + 1<<29
	odd := uint32(int32(quadrant<<1) >> 31)
	cosineBits := math.Float32bits(selectBits(odd, s, c)) ^ (quadrant+1<<30)&(1<<31)
	sineBits := math.Float32bits(selectBits(odd, c, s)) ^ quadrant&(1<<31)
	return math.Float32frombits(cosineBits), math.Float32frombits(sineBits)
}

// selectBits returns a if the mask is all ones and b if it is zero, without a branch, which would
// be mispredicted half of the time.
func selectBits(mask uint32, a, b float32) float32 {
	return math.Float32frombits(math.Float32bits(a)&mask | math.Float32bits(b)&^mask)
}

// normalsPortable fills dst with the normals of quads quad, quad+1, ... of the address; len(dst) is
// a multiple of 4.
func normalsPortable(dst []float32, quad uint32, a Address) {
	k, c := a.Key(), a.Counter(quad)
	k0, k1, c0, c1, c2, c3 := k[0], k[1], c[0], c[1], c[2], c[3]
	for ; len(dst) >= 4; dst = dst[4:] {
		w0, w1, w2, w3 := philox(c0, c1, c2, c3, k0, k1)
		dst[0], dst[1] = boxMuller(w0, w1)
		dst[2], dst[3] = boxMuller(w2, w3)
		c0++
	}
}

// NormalBlock fills the first count elements of dst with the standard normals of the stream's
// elements from block*BlockSize on, the same values as Normals. The other elements are undefined,
// so a short parameter does not pay for a whole block. An update kernel calls it with an array on
// its stack and uses the noise while it is in cache. It does not allocate. It panics if the address
// is invalid, if block is outside the stream, or if count is outside [0, BlockSize].
func NormalBlock(a Address, block, count int, dst *[BlockSize]float32) {
	if block < 0 || block >= MaxElements/BlockSize || count < 0 || count > BlockSize {
		panic(errors.Errorf("random: count must be in [0, %d] and block in [0, %d), got %d and %d",
			BlockSize, MaxElements/BlockSize, count, block))
	}
	a.mustContain(0, 0)
	groups := (count + normalGroup - 1) / normalGroup
	fillNormals(dst[:groups*normalGroup], uint32(block)*(BlockSize/4), a)
}

// Normals fills dst with the standard normals of elements first, first+1, ... of the stream. The
// value of an element does not depend on where a range starts. Elements 2i and 2i+1 come from words
// 2i and 2i+1 (see boxMuller); float64 holds the float32 values. It panics if the address is
// invalid or the range exceeds the stream.
func Normals[T Float](dst []T, first int, a Address) {
	a.mustContain(first, len(dst))
	if out, ok := any(dst).([]float32); ok && first%4 == 0 {
		n := len(out) / normalGroup * normalGroup
		fillNormals(out[:n], uint32(first/4), a)
		dst, first = dst[n:], first+n
	}
	var block [BlockSize]float32
	for len(dst) > 0 {
		skip := first % 4
		n := min(len(dst), BlockSize-skip)
		groups := (skip + n + normalGroup - 1) / normalGroup
		fillNormals(block[:groups*normalGroup], uint32(first/4), a)
		for i, z := range block[skip : skip+n] {
			dst[i] = T(z)
		}
		dst, first = dst[n:], first+n
	}
}
