package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// multiplyWindows writes the microkernel for a run of panels whose right factor is read in place.
func multiplyWindows(t target) {
	name := "multiplyWindows" + t.suffix
	TEXT(name, NOSPLIT, "func(rows, panels, depth int, a *float32, rowStride int, padded *float32, places, taps *int32,"+
		" y *float32, plane int, bias *float32, f int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is multiplyWindows for 1 to %d rows. places holds, for each panel, the offsets of its halves in padded and in y.", name, t.rows))
	byRowCount(t.rows, func(rows int) {
		panels, places := Load(Param("panels"), GP64()), Load(Param("places"), GP64())
		panel := fmt.Sprintf("panel_%d", rows)
		Label(panel)
		a := Load(Param("a"), GP64()).(GPVirtual)
		rowStride := loadBytes("rowStride")
		pointers, scalars := rowAddresses(rows, a, rowStride)
		var halves [2]Mem
		for h := range halves {
			pointer := addressOf("padded", Mem{Base: places, Disp: h * bytes})
			halves[h] = Mem{Base: pointer, Scale: bytes}
		}
		taps, depth := Load(Param("taps"), GP64()), Load(Param("depth"), GP64())
		s := newAccumulators(t, rows)
		step := func(n int) {
			tap := GP64()
			MOVLQSX(Mem{Base: taps, Disp: n * bytes}, tap)
			for i := range scalars {
				scalars[i].Disp = n * bytes
			}
			halves[0].Index, halves[1].Index = tap, tap
			s.stepHalves(scalars, halves[0], halves[1])
		}
		unrolledByTwo(rows, depth, func() {
			step(0)
			step(1)
			ADDQ(Imm(2*bytes), taps)
			for _, p := range pointers {
				ADDQ(Imm(2*bytes), p)
			}
		}, func() { step(0) })

		f, plane := Load(Param("f"), GP64()), loadBytes("plane")
		outputs := [2]GPVirtual{
			addressOf("y", Mem{Base: places, Disp: 2 * bytes}),
			addressOf("y", Mem{Base: places, Disp: 3 * bytes}),
		}
		ADDQ(Imm(4*bytes), places)
		// Read everything before writing: the halves may overlap.
		ifFlag(f, flagAccumulate, rows, func() {
			s.eachRow(outputs, plane, func(row []VecVirtual, halves [2]Mem) { s.addHalves(row, halves) })
		})
		ifFlag(f, flagBiasRow, rows, func() { s.addToRows(Load(Param("bias"), GP64())) })
		ifFlag(f, flagReLU, rows, s.rectify)
		ifFlag(f, flagCeiling, rows, func() { s.limit(f) })
		s.eachRow(outputs, plane, s.storeHalves)
		DECQ(panels)
		JNZ(LabelRef(panel))
	})
}

// addressOf returns the named pointer plus an offset in elements.
func addressOf(pointer string, offset Mem) GPVirtual {
	base, at := Load(Param(pointer), GP64()).(GPVirtual), GP64()
	MOVLQSX(offset, at)
	LEAQ(Mem{Base: base, Index: at, Scale: bytes}, base)
	return base
}
