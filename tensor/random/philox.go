package random

// The multipliers of the two halves of a round and the increments of the two words of the key
// (Salmon et al. 2011).
const (
	philoxM0 = 0xD2511F53
	philoxM1 = 0xCD9E8D57
	philoxW0 = 0x9E3779B9
	philoxW1 = 0xBB67AE85

	philoxRounds = 10
)

// Philox4x32 is Philox4x32-10, a bijection of the counter for each key:
//
//	round: (c0, c1, c2, c3) <- (hi(M1*c2) ^ c1 ^ k0, lo(M1*c2), hi(M0*c0) ^ c3 ^ k1, lo(M0*c0));
//	       (k0, k1) += (W0, W1)
//
// This package calls it with Address.Counter and Address.Key.
func Philox4x32(counter [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])
	return [4]uint32{c0, c1, c2, c3}
}

// philox is Philox4x32 with arguments and results in registers; passing arrays costs more than the
// rounds.
func philox(c0, c1, c2, c3, k0, k1 uint32) (uint32, uint32, uint32, uint32) {
	for range philoxRounds {
		p0 := uint64(philoxM0) * uint64(c0)
		p1 := uint64(philoxM1) * uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += philoxW0
		k1 += philoxW1
	}
	return c0, c1, c2, c3
}

// Bits fills dst with the words of elements first, first+1, ... of the stream. It panics if the
// address is invalid or the range exceeds the stream.
func Bits(dst []uint32, first int, a Address) {
	a.mustContain(first, len(dst))
	k, c := a.Key(), a.Counter(uint32(first/4))
	skip := first % 4
	for len(dst) > 0 {
		w0, w1, w2, w3 := philox(c[0], c[1], c[2], c[3], k[0], k[1])
		c[0]++
		if skip == 0 && len(dst) >= 4 {
			dst[0], dst[1], dst[2], dst[3] = w0, w1, w2, w3
			dst = dst[4:]
			continue
		}
		words := [4]uint32{w0, w1, w2, w3}
		dst = dst[copy(dst, words[skip:]):]
		skip = 0
	}
}
