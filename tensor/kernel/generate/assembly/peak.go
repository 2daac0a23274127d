package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// peakChains is how many multiply-adds depend on nothing but their own last result: more than any
// processor's latency times the two that it starts in a cycle.
const peakChains = 12

// peak writes a loop of nothing but fused multiply-adds.
func peak(t target) {
	TEXT("multiplyAdds"+t.suffix, NOSPLIT, "func(loops int)")
	Doc("multiplyAdds" + t.suffix + " makes twelve fused multiply-adds in each loop.")
	loops := Load(Param("loops"), GP64())
	var sums [peakChains]VecVirtual
	for i := range sums {
		sums[i] = t.zero()
	}
	factor := t.zero()
	Label("loop")
	for _, sum := range sums {
		VFMADD231PS(factor, factor, sum)
	}
	SUBQ(Imm(1), loops)
	JNE(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
