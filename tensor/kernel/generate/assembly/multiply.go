package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Bits of flags in package kernel.
const (
	flagAccumulate = 1 << iota
	flagBiasRow
	flagBiasColumn
	flagReLU
)

// sums are the accumulators of a tile: rows of two vectors.
type sums [][2]VecVirtual

func newSums(rows int) sums {
	s := make(sums, rows)
	for i := range s {
		for h := range s[i] {
			s[i][h] = YMM()
			VXORPS(s[i][h], s[i][h], s[i][h])
		}
	}
	return s
}

// step adds the product of one depth: each row's scalar times the panel's row.
func (s sums) step(scalars []Mem, b Mem) { s.stepHalves(scalars, b, b.Offset(vector*bytes)) }

// stepHalves is step with a row whose halves lie apart.
func (s sums) stepHalves(scalars []Mem, first, second Mem) {
	lo, hi := YMM(), YMM()
	VMOVUPS(first, lo)
	VMOVUPS(second, hi)
	for i := range s {
		a := YMM()
		VBROADCASTSS(scalars[i], a)
		VFMADD231PS(lo, a, s[i][0])
		VFMADD231PS(hi, a, s[i][1])
	}
}

// each visits the accumulators with their place in the output.
func (s sums) each(c GPVirtual, stride GPVirtual, visit func(i, h int, sum VecVirtual, at Mem)) {
	row := GP64()
	MOVQ(c, row)
	for i := range s {
		for h := range s[i] {
			visit(i, h, s[i][h], Mem{Base: row, Disp: h * vector * bytes})
		}
		if i+1 < len(s) {
			ADDQ(stride, row)
		}
	}
}

// rectify replaces negative sums by zero.
func (s sums) rectify() {
	zero := YMM()
	VXORPS(zero, zero, zero)
	for i := range s {
		for h := range 2 {
			// The maximum of a NaN and zero is the operand written first: NaN stays.
			VMAXPS(s[i][h], zero, s[i][h])
		}
	}
}

// prefetch asks for the output's cache lines while the sums are computed.
func (s sums) prefetch(c, stride GPVirtual) {
	row := GP64()
	MOVQ(c, row)
	for i := range s {
		PREFETCHT0(Mem{Base: row})
		PREFETCHT0(Mem{Base: row, Disp: (panelColumns - 1) * bytes})
		if i+1 < len(s) {
			ADDQ(stride, row)
		}
	}
}

func loadBytes(name string) GPVirtual {
	r := Load(Param(name), GP64()).(GPVirtual)
	SHLQ(Imm(2), r)
	return r
}

// rowAddresses returns the addresses of the left factor's rows, from at most two
// pointers, which advance together.
func rowAddresses(rows int, a, stride GPVirtual) (pointers []GPVirtual, scalars []Mem) {
	pointers = []GPVirtual{a}
	if rows > 3 {
		fourth := GP64()
		LEAQ(Mem{Base: a, Index: stride, Scale: 2}, fourth)
		ADDQ(stride, fourth)
		pointers = append(pointers, fourth)
	}
	for i := range rows {
		m := Mem{Base: pointers[i/3]}
		if i%3 != 0 {
			m.Index, m.Scale = stride, uint8(i%3)
		}
		scalars = append(scalars, m)
	}
	return pointers, scalars
}

// multiply writes the tile of the given number of rows with a strided left
// factor and all epilogues.
func multiply(rows int) {
	name := fmt.Sprintf("multiply%d", rows)
	TEXT(name, NOSPLIT, "func(depth int, a *float32, rowStride, depthStride int, b, c *float32, stride int, bias *float32, f int)")
	Pragma("noescape")
	Doc(name + " is multiply for a tile of that many rows.")
	depth := Load(Param("depth"), GP64())
	a := Load(Param("a"), GP64()).(GPVirtual)
	rowStride, depthStride := loadBytes("rowStride"), loadBytes("depthStride")
	b := Load(Param("b"), GP64())
	pointers, scalars := rowAddresses(rows, a, rowStride)
	c := Load(Param("c"), GP64()).(GPVirtual)
	stride := loadBytes("stride")
	s := newSums(rows)
	s.prefetch(c, stride)

	advance := func() {
		for _, p := range pointers {
			ADDQ(depthStride, p)
		}
	}
	Label("pairs")
	SUBQ(Imm(2), depth)
	JL(LabelRef("last"))
	s.step(scalars, Mem{Base: b})
	advance()
	s.step(scalars, Mem{Base: b, Disp: panelColumns * bytes})
	advance()
	ADDQ(Imm(2*panelColumns*bytes), b)
	JMP(LabelRef("pairs"))
	Label("last")
	ADDQ(Imm(2), depth)
	JZ(LabelRef("epilogue"))
	s.step(scalars, Mem{Base: b})

	Label("epilogue")
	f := Load(Param("f"), GP64())
	bias := Load(Param("bias"), GP64())
	when := func(flag uint32, label string, then func()) {
		TESTQ(U32(flag), f)
		JZ(LabelRef(label))
		then()
		Label(label)
	}
	when(flagAccumulate, "accumulated", func() {
		s.each(c, stride, func(i, h int, sum VecVirtual, at Mem) { VADDPS(at, sum, sum) })
	})
	when(flagBiasRow, "row_biased", func() {
		for i := range s {
			v := YMM()
			VBROADCASTSS(Mem{Base: bias, Disp: i * bytes}, v)
			VADDPS(v, s[i][0], s[i][0])
			VADDPS(v, s[i][1], s[i][1])
		}
	})
	when(flagBiasColumn, "column_biased", func() {
		for h := range 2 {
			v := YMM()
			VMOVUPS(Mem{Base: bias, Disp: h * vector * bytes}, v)
			for i := range s {
				VADDPS(v, s[i][h], s[i][h])
			}
		}
	})
	when(flagReLU, "rectified", s.rectify)
	s.each(c, stride, func(i, h int, sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
	VZEROUPPER()
	RET()
}

// multiplyTable writes the tile of the given number of rows with a left factor
// addressed by tables.
func multiplyTable(rows int) {
	name := fmt.Sprintf("multiplyTable%d", rows)
	TEXT(name, NOSPLIT, "func(depth int, data *float32, rowOffsets, depthOffsets *int32, b, c *float32, stride int, accumulate bool)")
	Pragma("noescape")
	Doc(name + " is multiplyTable for a tile of that many rows.")
	depth := Load(Param("depth"), GP64())
	data := Load(Param("data"), GP64())
	offsets := Load(Param("rowOffsets"), GP64())
	pointers := make([]GPVirtual, rows)
	for i := range pointers {
		pointers[i] = GP64()
		MOVLQSX(Mem{Base: offsets, Disp: i * bytes}, pointers[i])
		LEAQ(Mem{Base: data, Index: pointers[i], Scale: bytes}, pointers[i])
	}
	table := Load(Param("depthOffsets"), GP64())
	b := Load(Param("b"), GP64())
	c := Load(Param("c"), GP64()).(GPVirtual)
	stride := loadBytes("stride")
	s := newSums(rows)
	s.prefetch(c, stride)

	step := func(n int) {
		at := GP64()
		MOVLQSX(Mem{Base: table, Disp: n * bytes}, at)
		scalars := make([]Mem, rows)
		for i, p := range pointers {
			scalars[i] = Mem{Base: p, Index: at, Scale: bytes}
		}
		s.step(scalars, Mem{Base: b, Disp: n * panelColumns * bytes})
	}
	Label("pairs")
	SUBQ(Imm(2), depth)
	JL(LabelRef("last"))
	step(0)
	step(1)
	ADDQ(Imm(2*bytes), table)
	ADDQ(Imm(2*panelColumns*bytes), b)
	JMP(LabelRef("pairs"))
	Label("last")
	ADDQ(Imm(2), depth)
	JZ(LabelRef("store"))
	step(0)

	Label("store")
	accumulate := Load(Param("accumulate"), GP8())
	TESTB(accumulate, accumulate)
	JZ(LabelRef("accumulated"))
	s.each(c, stride, func(i, h int, sum VecVirtual, at Mem) { VADDPS(at, sum, sum) })
	Label("accumulated")
	s.each(c, stride, func(i, h int, sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
	VZEROUPPER()
	RET()
}
