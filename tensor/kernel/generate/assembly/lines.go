package assembly

import (
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lineTaps is the number of filter columns that accumulateLines supports.
const lineTaps = 5

// accumulateLines writes the sums of products of channels' lines with lines of x shifted by each
// tap: for one pair of channels, whose sums go to two places, or for two pairs, whose sums lie at a
// distance of each elements. Eight pixels of a pair are one vector of AVX-512 or two of AVX2; the
// order of the sums is the same.
func accumulateLines(t target, pairs int) {
	name, where := "accumulateLines"+t.suffix, "first, other *float32"
	if pairs > 1 {
		name, where = "accumulateFourLines"+t.suffix, "first *float32, each int"
	}
	TEXT(name, NOSPLIT, "func(dout *float32, second, image int, x *float32, offsets *int32, count, images, rows, line, xRow, xImage int, "+
		where+", add bool)")
	Pragma("noescape")
	Doc(name + " is accumulateLines.")
	offsets, count := Load(Param("offsets"), GP64()), Load(Param("count"), GP64())
	second := loadBytes("second")
	places := []GPVirtual{Load(Param("first"), GP64()).(GPVirtual)} // of the sums
	if pairs == 1 {
		places = append(places, Load(Param("other"), GP64()).(GPVirtual))
	}

	Label("offset")
	x, offset := Load(Param("x"), GP64()), GP64()
	MOVLQSX(Mem{Base: offsets}, offset)
	LEAQ(Mem{Base: x, Index: offset, Scale: bytes}, x)
	ADDQ(Imm(bytes), offsets)
	each := make([]accumulators, pairs)
	for i := range each {
		each[i] = newAccumulators(t, lineTaps)
	}
	dout, images := Load(Param("dout"), GP64()), Load(Param("images"), GP64())
	Label("image")
	rows, row := Load(Param("rows"), GP64()), GP64()
	at := make([]GPVirtual, pairs)
	for i := range at {
		at[i] = GP64()
		if i == 0 {
			MOVQ(dout, at[i])
		} else {
			LEAQ(Mem{Base: at[i-1], Index: second, Scale: 2}, at[i])
		}
	}
	MOVQ(x, row)
	Label("row")
	line, from := Load(Param("line"), GP64()), GP64()
	MOVQ(row, from)
	Label("vector")
	channels := make([][]VecVirtual, pairs)
	for i, s := range each {
		channels[i] = s.loadHalves([2]Mem{{Base: at[i]}, {Base: at[i], Index: second, Scale: 1}})
	}
	for tap := range lineTaps {
		v, moved := t.new(), Mem{Base: from, Disp: tap * bytes}
		if t.lanes == panelColumns {
			VBROADCASTF32X8(moved, v)
		} else {
			VMOVUPS(moved, v)
		}
		for i, s := range each {
			for h, sum := range s.rows[tap] {
				VFMADD231PS(v, channels[i][h], sum)
			}
		}
	}
	for i := range at {
		ADDQ(Imm(vector*bytes), at[i])
	}
	ADDQ(Imm(vector*bytes), from)
	SUBQ(Imm(vector), line)
	JNZ(LabelRef("vector"))
	step := loadBytes("xRow")
	ADDQ(step, row)
	DECQ(rows)
	JNZ(LabelRef("row"))
	step = loadBytes("xImage")
	ADDQ(step, x)
	step = loadBytes("image")
	ADDQ(step, dout)
	DECQ(images)
	JNZ(LabelRef("image"))

	var totals [][lineTaps]Register // by channel
	for _, s := range each {
		var pair [2][lineTaps]Register
		for tap, sums := range s.rows {
			for half, v := range s.halves(sums) {
				t.horizontal(v)
				pair[half][tap] = v.AsX()
			}
		}
		totals = append(totals, pair[:]...)
	}
	to, apart := places[0], GPVirtual(nil)
	if pairs > 1 {
		to, apart = GP64(), loadBytes("each")
		MOVQ(places[0], to)
	}
	for channel, sums := range totals {
		if pairs == 1 {
			to = places[channel]
		} else if channel > 0 {
			ADDQ(apart, to)
		}
		add, label := Load(Param("add"), GP8()), "store"+strconv.Itoa(channel)
		TESTB(add, add)
		JZ(LabelRef(label))
		for tap, v := range sums {
			VADDSS(Mem{Base: to, Disp: tap * bytes}, v, v)
		}
		Label(label)
		for tap, v := range sums {
			VMOVSS(v, Mem{Base: to, Disp: tap * bytes})
		}
	}
	for _, place := range places {
		ADDQ(Imm(lineTaps*bytes), place)
	}
	DECQ(count)
	JNZ(LabelRef("offset"))
	VZEROUPPER()
	RET()
}

// horizontal reduces a vector of eight to its sum, in the lowest element.
func (t target) horizontal(v VecVirtual) {
	high := YMM()
	if t.lanes == panelColumns { // VEXTRACTF32X4 reaches all 32 registers
		VEXTRACTF32X4(Imm(1), v, high.AsX())
	} else {
		VEXTRACTF128(Imm(1), v, high.AsX())
	}
	VADDPS(high.AsX(), v.AsX(), v.AsX())
	VMOVHLPS(v.AsX(), v.AsX(), high.AsX())
	VADDPS(high.AsX(), v.AsX(), v.AsX())
	VMOVSHDUP(v.AsX(), high.AsX())
	VADDSS(high.AsX(), v.AsX(), v.AsX())
}
