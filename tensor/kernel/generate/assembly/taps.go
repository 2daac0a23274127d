package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// tapBlock is the minimum number of outputs that are computed together, and tapBlocks the maximum
// number of such blocks whose sums are in registers at a time.
const (
	tapBlock  = panelColumns
	tapBlocks = 4
)

// tapSums writes lines of sums over taps.
func tapSums(t target) {
	name := "tapSums" + t.suffix
	TEXT(name, NOSPLIT, "func(to *float32, blocks int, from *float32, offsets *int32, weights *float32, taps int, epilogue *float32)")
	Pragma("noescape")
	Doc(name + " is tapLine for blocks of sixteen outputs. epilogue holds the bias, the floor and the ceiling.")
	to, from, blocks := Load(Param("to"), GP64()), Load(Param("from"), GP64()), Load(Param("blocks"), GP64())
	offsets, weights, taps := Load(Param("offsets"), GP64()), Load(Param("weights"), GP64()), Load(Param("taps"), GP64())
	epilogue := Load(Param("epilogue"), GP64())
	var scalars [3]VecVirtual
	for i := range scalars {
		scalars[i] = t.new()
		VBROADCASTSS(Mem{Base: epilogue, Disp: i * bytes}, scalars[i])
	}
	together := func(count int) {
		next, end := fmt.Sprintf("blocks_%d", count), fmt.Sprintf("end_%d", count)
		Label(next)
		CMPQ(blocks, Imm(uint64(count)))
		JL(LabelRef(end))
		sums := make([]VecVirtual, count*tapBlock/t.lanes)
		for i := range sums {
			sums[i] = t.zero()
		}
		tap := GP64()
		XORQ(tap, tap)
		loop := fmt.Sprintf("tap_%d", count)
		Label(loop)
		at, weight := GP64(), t.new()
		MOVLQSX(Mem{Base: offsets, Index: tap, Scale: bytes}, at)
		VBROADCASTSS(Mem{Base: weights, Index: tap, Scale: bytes}, weight)
		for i, sum := range sums {
			VFMADD231PS(Mem{Base: from, Index: at, Scale: bytes, Disp: i * t.lanes * bytes}, weight, sum)
		}
		INCQ(tap)
		CMPQ(tap, taps)
		JL(LabelRef(loop))
		for i, sum := range sums {
			VADDPS(scalars[0], sum, sum)
			// VMAXPS and VMINPS of a NaN and a number return the operand written first, so NaN stays.
			VMAXPS(sum, scalars[1], sum)
			VMINPS(sum, scalars[2], sum)
			VMOVUPS(sum, Mem{Base: to, Disp: i * t.lanes * bytes})
		}
		ADDQ(U32(uint32(count*tapBlock*bytes)), to)
		ADDQ(U32(uint32(count*tapBlock*bytes)), from)
		SUBQ(Imm(uint64(count)), blocks)
		JMP(LabelRef(next))
		Label(end)
	}
	together(tapBlocks)
	together(1)
	VZEROUPPER()
	RET()
}

// tapProducts writes the products of a line with the lines that taps read, for up to most taps.
func tapProducts(t target, most int) {
	name := "tapProductsOf" + t.suffix
	TEXT(name, NOSPLIT, "func(sums, line *float32, blocks int, from *float32, offsets *int32, rows int, add bool)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is tapProducts for 1 to %d taps, the parameter rows.", name, most))
	byRowCount(most, func(taps int) {
		from, offsets := Load(Param("from"), GP64()), Load(Param("offsets"), GP64())
		pointers := make([]GPVirtual, taps)
		for i := range pointers {
			pointers[i] = GP64()
			MOVLQSX(Mem{Base: offsets, Disp: i * bytes}, pointers[i])
			LEAQ(Mem{Base: from, Index: pointers[i], Scale: bytes}, pointers[i])
		}
		line, blocks, at := Load(Param("line"), GP64()), Load(Param("blocks"), GP64()), GP64()
		XORQ(at, at)
		s := newAccumulators(t, taps)
		loop := fmt.Sprintf("block_%d", taps)
		Label(loop)
		for h := range s.parts() {
			v, disp := t.new(), h*t.lanes*bytes
			VMOVUPS(Mem{Base: line, Index: at, Scale: 1, Disp: disp}, v)
			for i, sums := range s.rows {
				VFMADD231PS(Mem{Base: pointers[i], Index: at, Scale: 1, Disp: disp}, v, sums[h])
			}
		}
		ADDQ(Imm(tapBlock*bytes), at)
		DECQ(blocks)
		JNZ(LabelRef(loop))

		sums, add := Load(Param("sums"), GP64()), Load(Param("add"), GP8())
		totals := make([]VecVirtual, taps)
		for i, row := range s.rows {
			totals[i] = s.horizontal(row)
		}
		added := fmt.Sprintf("added_%d", taps)
		TESTB(add, add)
		JZ(LabelRef(added))
		for i, total := range totals {
			VADDSS(Mem{Base: sums, Disp: i * bytes}, total, total)
		}
		Label(added)
		for i, total := range totals {
			VMOVSS(total, Mem{Base: sums, Disp: i * bytes})
		}
	})
}

// horizontal returns the sum of a row of sixteen in the lowest lane, added at falling distances.
func (s accumulators) horizontal(row []VecVirtual) VecVirtual {
	halves := s.halves(row)
	sum, high := halves[0], XMM()
	VADDPS(halves[1], sum, sum)
	VEXTRACTF128(Imm(1), sum, high)
	low := sum.AsX().(VecVirtual)
	VADDPS(high, low, low)
	VPERMILPS(Imm(0b1110), low, high)
	VADDPS(high, low, low)
	VPERMILPS(Imm(1), low, high)
	VADDSS(high, low, low)
	return low
}
