// Package assembly writes the assembly of package random. It performs the operations of philox and
// boxMuller in the same order, on eight or sixteen lanes at a time; a test of package random
// compares the bits. The coefficients of the polynomials in normal.go are repeated here.
package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	rounds      = 10
	bytesAQuad  = 16
	quadsAGroup = 8 // 32 normals
)

// Write emits all functions, in AVX-512 (F and DQ) or AVX2.
func Write(avx512 bool) {
	wide = avx512
	ConstraintExpr("!purego")
	suffix := by("AVX2", "AVX512")
	groupsOf("normalGroups"+suffix, "normals", boxMullers, boxMuller)
	groupsOf("uniformGroups"+suffix, "uniforms", func() {}, uniforms)
	Generate()
}

// groupsOf writes a function: the key schedule, a loop that stores the words of sets where their
// numbers will be, and a loop that turns the words into numbers. Each loop processes several
// iterations at once to hide latencies; a single loop for both would be too long for that.
func groupsOf(name, what string, prepare func(), numbers func(sets int, dst Register)) {
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
	if wide {
		oddLanes = newOddLanes()
	}

	at := GP64()
	MOVQ(dst, at)
	left := GP64()
	setsOf(groups, left)
	together("words", left, func(sets int) { words(sets, shared, counter, at) })
	setsOf(groups, left)
	prepare()
	together(what, left, func(sets int) { numbers(sets, dst) })
	VZEROUPPER()
	RET()
}

// atOnce returns the number of sets that are processed together: one waits for its operands while
// the others work.
func atOnce() int { return by(3, 4) }

// setsOf computes the number of sets in some groups.
func setsOf(groups, sets Register) {
	if quadsASet() == quadsAGroup {
		MOVQ(groups, sets)
	} else {
		LEAQ(Mem{Base: groups, Index: groups, Scale: 1}, sets)
	}
}

// together writes loops over the remaining sets: several at once, then single ones.
func together(name string, left GPVirtual, body func(sets int)) {
	SUBQ(Imm(uint64(atOnce())), left)
	JL(LabelRef(name + "_rest"))
	Label(name)
	body(atOnce())
	SUBQ(Imm(uint64(atOnce())), left)
	JGE(LabelRef(name))
	Label(name + "_rest")
	ADDQ(Imm(uint64(atOnce())), left)
	JZ(LabelRef(name + "_end"))
	Label(name + "_one")
	body(1)
	DECQ(left)
	JNZ(LabelRef(name + "_one"))
	Label(name + "_end")
}

// words computes the words of some sets, alternating their rounds, and advances the counter.
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
