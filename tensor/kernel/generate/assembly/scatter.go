package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// scatter writes the products of a panel with all taps of some channels. The left factor is packed.
func scatter(t target) {
	name := "scatter" + t.suffix
	TEXT(name, NOSPLIT, "func(rows, depth, taps int, a *float32, skip int, b, c0, c1 *float32, offsets *int32, plane int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is scatterPanel for 1 to %d channels; skip is the number of elements of a between two taps.", name, t.rows))
	byRowCount(t.rows, func(rows int) {
		taps := Load(Param("taps"), GP64())
		a := Load(Param("a"), GP64())
		offsets := Load(Param("offsets"), GP64())
		plane := loadBytes("plane")
		tap := fmt.Sprintf("tap_%d", rows)
		Label(tap)
		depth := Load(Param("depth"), GP64())
		b := Load(Param("b"), GP64())
		s := newAccumulators(t, rows)
		var lines [2]Mem
		at := GP64()
		MOVLQSX(Mem{Base: offsets}, at)
		ADDQ(Imm(bytes), offsets)
		for h, name := range []string{"c0", "c1"} {
			line := Load(Param(name), GP64())
			LEAQ(Mem{Base: line, Index: at, Scale: bytes}, line)
			lines[h] = Mem{Base: line}
		}
		step := func(n int) {
			scalars := make([]Mem, rows)
			for i := range scalars {
				scalars[i] = Mem{Base: a, Disp: (n*rows + i) * bytes}
			}
			s.step(scalars, Mem{Base: b, Disp: n * panelColumns * bytes})
		}
		unrolledByTwo(rows, depth, func() {
			step(0)
			step(1)
			ADDQ(Imm(uint64(2*rows*bytes)), a)
			ADDQ(Imm(2*panelColumns*bytes), b)
		}, func() {
			step(0)
			ADDQ(Imm(uint64(rows*bytes)), a)
		})

		for i, row := range s.rows {
			// Both halves may be in the same line, so the second is read after the first is
			// written.
			for h, v := range s.halves(row) {
				VADDPS(lines[h], v, v)
				VMOVUPS(v, lines[h])
				if i+1 < rows {
					ADDQ(plane, lines[h].Base)
				}
			}
		}
		skip := loadBytes("skip")
		ADDQ(skip, a)
		DECQ(taps)
		JNZ(LabelRef(tap))
	})
}
