package random

// Float is the type of a number that is drawn. The draws are made in float32; float64 holds the same values.
type Float interface {
	float32 | float64
}

// uniform maps a word to (0, 1]: the upper 24 bits plus one, times 2^-24. Every value is exact in float32.
func uniform(word uint32) float32 {
	return float32(int32(word>>8)+1) * 0x1p-24
}

// Uniforms fills dst with elements first, first+1, ... of the stream, uniform on (0, 1]: a multiple of 2^-24, never 0, so that its
// logarithm is finite. It panics when the address is not valid or the range leaves the stream.
func Uniforms[T Float](dst []T, first int, a Address) {
	a.mustHold(first, len(dst))
	var words [BlockSize]uint32
	for len(dst) > 0 {
		n := min(len(dst), len(words))
		Bits(words[:n], first, a)
		for i, word := range words[:n] {
			dst[i] = T(uniform(word))
		}
		dst, first = dst[n:], first+n
	}
}
