package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// schedule holds on the stack the values that all quads of a call share (see store): the key words
// of the rounds, and those parts of rounds 0, 1 and 2 that do not depend on c0, with their key
// words already applied.
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

// set is the Philox state of four or eight quads: four registers, each with one word of each quad
// in the lower halves of its 64-bit lanes, where VPMULUDQ reads it. The upper halves hold garbage
// that never reaches the lower ones.
type set struct {
	c0, c1, c2, c3 VecVirtual
}

// newSet returns the state of a set before round 0, in which quads differ only in c0. counter holds
// c0 of the quads of set 0.
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
	if wide {
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

// round0 does not write c0 and c1: they are equal for all quads, and schedule has already used
// them.
func (s *set) round0(shared *schedule) {
	s.c2, s.c3 = vector(), s.c0
	times(constant("philoxM0", 0xD2511F53), s.c3, s.c3)
	VPSRLQ(Imm(32), s.c3, s.c2)
	xorWord(shared.c3Round0, s.c2, s.c2)
}

// round1 does not write c3: it is equal for all quads, and schedule has already used it.
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

// words returns, in all 32-bit lanes, words 0 and 2 of the quads (for radius), and words 1 and 3
// (for circle).
func (s *set) words() (w0, w1 VecVirtual) {
	for _, v := range [][2]VecVirtual{{s.c0, s.c2}, {s.c1, s.c3}} {
		if wide {
			const evenTwice = 0xa0
			VPSHUFD(Imm(evenTwice), v[1], oddLanes, v[0])
		} else {
			VPSLLQ(Imm(32), v[1], v[1])
			VPBLENDD(Imm(0xaa), v[1], v[0], v[0])
		}
	}
	return s.c0, s.c1
}

// oddLanes holds, in AVX-512, the mask of every other word.
var oddLanes Register

func newOddLanes() Register {
	mask, bits := K(), GP32()
	MOVL(U32(0xaaaa), bits)
	KMOVW(bits, mask)
	return mask
}
