package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// multiplyWindows writes the tiles of the given number of rows for a run of panels whose right factor is read where it lies.
func multiplyWindows(rows int) {
	name := fmt.Sprintf("multiplyWindows%d", rows)
	TEXT(name, NOSPLIT, "func(panels, depth int, a *float32, rowStride int, padded *float32, places, taps *int32, y *float32, plane int, bias *float32, f int)")
	Pragma("noescape")
	Doc(name + " is multiplyWindows for that many rows. places holds, for each panel, those of its halves in padded and those in y.")
	panels, places := Load(Param("panels"), GP64()), Load(Param("places"), GP64())
	f := Load(Param("f"), GP64())
	when := func(flag uint32, label string, then func()) {
		TESTQ(U32(flag), f)
		JZ(LabelRef(label))
		then()
		Label(label)
	}

	Label("panel")
	a := Load(Param("a"), GP64()).(GPVirtual)
	rowStride := loadBytes("rowStride")
	pointers, scalars := rowAddresses(rows, a, rowStride)
	var halves [2]Register
	for h := range halves {
		halves[h] = Load(Param("padded"), GP64())
		at := GP64()
		MOVLQSX(Mem{Base: places, Disp: h * bytes}, at)
		LEAQ(Mem{Base: halves[h], Index: at, Scale: bytes}, halves[h])
	}
	taps, depth := Load(Param("taps"), GP64()), Load(Param("depth"), GP64())
	s := newSums(rows)
	step := func(n int) {
		tap := GP64()
		MOVLQSX(Mem{Base: taps, Disp: n * bytes}, tap)
		for i := range scalars {
			scalars[i].Disp = n * bytes
		}
		s.stepHalves(scalars, Mem{Base: halves[0], Index: tap, Scale: bytes}, Mem{Base: halves[1], Index: tap, Scale: bytes})
	}
	Label("pairs")
	SUBQ(Imm(2), depth)
	JL(LabelRef("last"))
	step(0)
	step(1)
	ADDQ(Imm(2*bytes), taps)
	for _, p := range pointers {
		ADDQ(Imm(2*bytes), p)
	}
	JMP(LabelRef("pairs"))
	Label("last")
	ADDQ(Imm(2), depth)
	JZ(LabelRef("epilogue"))
	step(0)

	Label("epilogue")
	plane := loadBytes("plane")
	var outputs [2]GPVirtual
	for h := range outputs {
		outputs[h] = Load(Param("y"), GP64()).(GPVirtual)
		at := GP64()
		MOVLQSX(Mem{Base: places, Disp: (2 + h) * bytes}, at)
		LEAQ(Mem{Base: outputs[h], Index: at, Scale: bytes}, outputs[h])
	}
	ADDQ(Imm(4*bytes), places)
	// All is read before anything is written: the halves may overlap.
	when(flagAccumulate, "accumulated", func() {
		s.eachHalf(outputs, plane, func(sum VecVirtual, at Mem) { VADDPS(at, sum, sum) })
	})
	when(flagBiasRow, "biased", func() {
		bias := Load(Param("bias"), GP64())
		for i := range s {
			v := YMM()
			VBROADCASTSS(Mem{Base: bias, Disp: i * bytes}, v)
			VADDPS(v, s[i][0], s[i][0])
			VADDPS(v, s[i][1], s[i][1])
		}
	})
	when(flagReLU, "rectified", s.rectify)
	s.eachHalf(outputs, plane, func(sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
	DECQ(panels)
	JNZ(LabelRef("panel"))
	VZEROUPPER()
	RET()
}

// eachHalf visits the accumulators with their places in an output whose halves lie apart.
func (s sums) eachHalf(outputs [2]GPVirtual, stride GPVirtual, visit func(sum VecVirtual, at Mem)) {
	for h, output := range outputs {
		row := GP64()
		MOVQ(output, row)
		for i := range s {
			visit(s[i][h], Mem{Base: row})
			if i+1 < len(s) {
				ADDQ(stride, row)
			}
		}
	}
}
