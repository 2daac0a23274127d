package random

// Float is the type of a draw. Draws are computed in float32; float64 holds the same values.
type Float interface {
	float32 | float64
}

// uniform maps a word to (0, 1]: the upper 24 bits plus one, times 2^-24. Every value is exact in
// float32.
func uniform(word uint32) float32 {
	return float32(int32(word>>8)+1) * 0x1p-24
}

// Uniforms fills dst with elements first, first+1, ... of the stream, uniform on (0, 1]: multiples
// of 2^-24, never 0, so that their logarithms are finite. It panics if the address is invalid or
// the range exceeds the stream.
func Uniforms[T Float](dst []T, first int, a Address) {
	a.mustContain(first, len(dst))
	if out, ok := any(dst).([]float32); ok && first%4 == 0 {
		n := len(out) / normalGroup * normalGroup
		fillUniforms(out[:n], uint32(first/4), a)
		dst, first = dst[n:], first+n
	}
	var block [BlockSize]float32
	for len(dst) > 0 {
		skip := first % 4
		n := min(len(dst), BlockSize-skip)
		groups := (skip + n + normalGroup - 1) / normalGroup
		fillUniforms(block[:groups*normalGroup], uint32(first/4), a)
		for i, u := range block[skip : skip+n] {
			dst[i] = T(u)
		}
		dst, first = dst[n:], first+n
	}
}

// uniformsPortable is fillUniforms in Go; len(dst) is a multiple of 4.
func uniformsPortable(dst []float32, quad uint32, a Address) {
	k, c := a.Key(), a.Counter(quad)
	for ; len(dst) >= 4; dst = dst[4:] {
		w0, w1, w2, w3 := philox(c[0], c[1], c[2], c[3], k[0], k[1])
		dst[0], dst[1], dst[2], dst[3] = uniform(w0), uniform(w1), uniform(w2), uniform(w3)
		c[0]++
	}
}

// Fractions fills dst with elements first, first+1, ... of a stream of multiples of 2^-53 in [0,
// 1), each made of two words of the stream. It panics if the address is invalid or the words exceed
// the stream.
func Fractions(dst []float64, first int, a Address) {
	var words [2]uint32
	for i := range dst {
		Bits(words[:], 2*(first+i), a)
		dst[i] = float64(uint64(words[0])<<21|uint64(words[1])>>11) * 0x1p-53
	}
}
