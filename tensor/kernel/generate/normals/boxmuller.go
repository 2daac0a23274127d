package main

import . "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"

// pair is two vectors on which the same operations are performed, so that the processor works on
// one while the other waits for its operands.
type pair [2]V

// of writes an instruction for both vectors of a pair. Each of numbers is a pair, or an operand
// that both share.
func (d draws) of(format string, numbers ...any) (result pair) {
	for i := range result {
		args := make([]any, len(numbers))
		for n, number := range numbers {
			if p, is := number.(pair); is {
				number = p[i]
			}
			args[n] = number
		}
		result[i] = d.Of(format, args...)
	}
	return result
}

func (d draws) add(a, b any) pair      { return d.of("fadd v%d.4s, v%d.4s, v%d.4s", a, b) }
func (d draws) subtract(a, b any) pair { return d.of("fsub v%d.4s, v%d.4s, v%d.4s", a, b) }
func (d draws) multiply(a, b any) pair { return d.of("fmul v%d.4s, v%d.4s, v%d.4s", a, b) }
func (d draws) and(a, b any) pair      { return d.of("and v%d.16b, v%d.16b, v%d.16b", a, b) }
func (d draws) or(a, b any) pair       { return d.of("orr v%d.16b, v%d.16b, v%d.16b", a, b) }
func (d draws) integers(a any) pair    { return d.of("scvtf v%d.4s, v%d.4s", a) }

// choose replaces the bits of b that are set in mask by the bits of a.
func (d draws) choose(mask, a, b pair) {
	for i := range mask {
		d.Arm("bit v%d.16b, v%d.16b, v%d.16b", b[i], a[i], mask[i])
	}
}

// boxMuller turns words 0 and 2 into radii, 1 and 3 into cosines and sines, and these into normals.
func boxMuller(d draws, words [4]V) [4]V {
	r := d.radius(pair{words[0], words[2]})
	cosine, sine := d.circle(pair{words[1], words[3]})
	cosine, sine = d.multiply(r, cosine), d.multiply(r, sine)
	return [4]V{cosine[0], sine[0], cosine[1], sine[1]}
}

// radius computes sqrt(-2 ln((word|1) / 2^32)) with the operations of radius in package random.
func (d draws) radius(words pair) pair {
	words = d.or(words, d.word(1))
	x, upper := d.integers(words), d.of("sshr v%d.4s, v%d.4s, #31", words)
	k := d.of("sub v%d.4s, v%d.4s, v%d.4s", d.word(158), d.of("ushr v%d.4s, v%d.4s, #23", x))
	k = d.multiply(d.integers(d.of("bic v%d.16b, v%d.16b, v%d.16b", k, upper)), d.float(0x1.62e43p+0))
	g := d.or(d.and(x, d.word(0x007fffff)), d.word(0x3f000000))
	g = d.subtract(d.float(1), g)
	d.choose(upper, d.multiply(x, d.float(-0x1p-32)), g)

	g2 := d.multiply(g, g)
	high := d.cubic(g, g2, -0x1.72285ep-2, 0x1.354ff6p+1, -0x1.a3993p+1, 0x1.6a0f48p+1)
	high = d.multiply(high, d.multiply(g2, g2))
	p := d.add(d.cubic(g, g2, 0x1.fffecp-1, 0x1.55a384p-1, 0x1.f313e6p-2, 0x1.0df6cap-1), high)
	square := d.add(k, d.add(d.add(g, g), d.multiply(p, g2)))
	return d.of("fsqrt v%d.4s, v%d.4s", square)
}

// circle computes the cosine and the sine of 2 pi (word + 1/2) / 2^32 with the operations of circle
// in package random.
func (d draws) circle(words pair) (cosine, sine pair) {
	t := d.integers(d.or(d.of("shl v%d.4s, v%d.4s, #2", words), d.word(2)))
	t = d.multiply(t, d.float(0x1p-32))
	v := d.multiply(t, t)
	v2 := d.multiply(v, v)
	s := d.multiply(d.cubic(v, v2, 0x1.921fb6p+0, -0x1.4abc24p-1, 0x1.4680a4p-4, -0x1.33198ep-8), t)
	c := d.multiply(d.cubic(v, v2, -0x1.3bd3ccp+0, 0x1.03c1bp-2, -0x1.55b2b6p-6, 0x1.d4f7eep-11), v)
	c = d.add(c, d.float(1))

	quadrant := d.of("add v%d.4s, v%d.4s, v%d.4s", words, d.word(1<<29))
	odd := d.of("sshr v%d.4s, v%d.4s, #31", d.of("shl v%d.4s, v%d.4s, #1", quadrant))
	cosine = d.of("mov v%d.16b, v%d.16b", c)
	d.choose(odd, s, cosine)
	d.choose(odd, c, s)
	sign := d.word(1 << 31)
	turned := d.and(d.of("add v%d.4s, v%d.4s, v%d.4s", quadrant, d.word(1<<30)), sign)
	return d.of("eor v%d.16b, v%d.16b, v%d.16b", cosine, turned), d.of("eor v%d.16b, v%d.16b, v%d.16b", s, d.and(quadrant, sign))
}

// cubic evaluates (a0 + a1 x) + (a2 + a3 x) x2, x2 being the square of x.
func (d draws) cubic(x, x2 pair, a0, a1, a2, a3 float32) pair {
	low := d.add(d.multiply(x, d.float(a1)), d.float(a0))
	high := d.add(d.multiply(x, d.float(a3)), d.float(a2))
	return d.add(low, d.multiply(high, x2))
}
