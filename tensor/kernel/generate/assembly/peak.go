package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// peakChains is the number of independent chains of multiply-adds. It is larger than any
// processor's latency, in cycles, times the two multiply-adds that it starts per cycle.
const peakChains = 12

// peak writes a loop that consists only of fused multiply-adds.
func peak(t target) {
	TEXT("multiplyAdds"+t.suffix, NOSPLIT, "func(loops int)")
	Doc("multiplyAdds" + t.suffix + " executes twelve fused multiply-adds in each loop.")
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
