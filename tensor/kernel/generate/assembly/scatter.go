package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// scatter writes the products of a panel with all taps of that many channels, whose left factor is packed.
func scatter(rows int) {
	name := fmt.Sprintf("scatter%d", rows)
	TEXT(name, NOSPLIT, "func(depth, taps int, a *float32, skip int, b, c0, c1 *float32, offsets *int32, plane int)")
	Pragma("noescape")
	Doc(name + " is scatterPanel for that many channels; skip is how much of a lies between two taps.")
	taps := Load(Param("taps"), GP64())
	a := Load(Param("a"), GP64())
	offsets := Load(Param("offsets"), GP64())
	plane := loadBytes("plane")
	scalars := make([]Mem, rows)
	for i := range scalars {
		scalars[i] = Mem{Base: a, Disp: i * bytes}
	}

	Label("tap")
	depth := Load(Param("depth"), GP64())
	b := Load(Param("b"), GP64())
	s := newSums(rows)
	at := GP64()
	MOVLQSX(Mem{Base: offsets}, at)
	ADDQ(Imm(bytes), offsets)
	var lines [2]Register
	for h, name := range []string{"c0", "c1"} {
		lines[h] = Load(Param(name), GP64())
		LEAQ(Mem{Base: lines[h], Index: at, Scale: bytes}, lines[h])
	}
	Label("pairs")
	SUBQ(Imm(2), depth)
	JL(LabelRef("last"))
	s.step(scalars, Mem{Base: b})
	for i := range scalars {
		scalars[i].Disp += rows * bytes
	}
	s.step(scalars, Mem{Base: b, Disp: panelColumns * bytes})
	for i := range scalars {
		scalars[i].Disp -= rows * bytes
	}
	ADDQ(Imm(uint64(2*rows*bytes)), a)
	ADDQ(Imm(2*panelColumns*bytes), b)
	JMP(LabelRef("pairs"))
	Label("last")
	ADDQ(Imm(2), depth)
	JZ(LabelRef("add"))
	s.step(scalars, Mem{Base: b})
	ADDQ(Imm(uint64(rows*bytes)), a)

	Label("add")
	for i := range s {
		for h, line := range lines {
			VADDPS(Mem{Base: line}, s[i][h], s[i][h])
			VMOVUPS(s[i][h], Mem{Base: line})
			if i+1 < len(s) {
				ADDQ(plane, line)
			}
		}
	}
	skip := loadBytes("skip")
	ADDQ(skip, a)
	DECQ(taps)
	JNZ(LabelRef("tap"))
	VZEROUPPER()
	RET()
}
