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
	flagCeiling
	ceilingBit = 32 // the ceiling's position
)

// byRowCount writes a body for each number of rows, up to most, and the jumps to the body for the
// parameter rows.
func byRowCount(most int, body func(rows int)) {
	rows := Load(Param("rows"), GP64())
	for n := most; n > 1; n-- {
		CMPQ(rows, Imm(uint64(n)))
		JE(LabelRef(fmt.Sprintf("rows_%d", n)))
	}
	for n := 1; n <= most; n++ {
		if n > 1 {
			Label(fmt.Sprintf("rows_%d", n))
		}
		body(n)
		VZEROUPPER()
		RET()
	}
}

// byTiles is byRowCount for register tiles below each other.
func byTiles(most int, tile func(rows int)) {
	byRowCount(most, func(rows int) { eachTile(rows, func() { tile(rows) }) })
}

// unrolledByTwo writes a loop over the depth that runs two for each pair of steps, and one for an
// odd last step.
func unrolledByTwo(rows int, depth Register, two, one func()) {
	pairs, last, end := fmt.Sprintf("pairs_%d", rows), fmt.Sprintf("last_%d", rows), fmt.Sprintf("end_%d", rows)
	Label(pairs)
	SUBQ(Imm(2), depth)
	JL(LabelRef(last))
	two()
	JMP(LabelRef(pairs))
	Label(last)
	ADDQ(Imm(2), depth)
	JZ(LabelRef(end))
	one()
	Label(end)
}

func loadBytes(name string) GPVirtual {
	r := Load(Param(name), GP64()).(GPVirtual)
	SHLQ(Imm(2), r)
	return r
}

// rowAddresses returns the operands of the left factor's rows. They use one pointer for every three
// rows (base, base + stride, base + 2 stride), because x86 addresses scale an index by 1, 2, 4 or
// 8.
func rowAddresses(rows int, a, stride GPVirtual) (pointers []GPVirtual, scalars []Mem) {
	for i := range rows {
		if i%3 == 0 && i > 0 {
			next := GP64()
			LEAQ(Mem{Base: a, Index: stride, Scale: 2}, next)
			ADDQ(stride, next)
			a = next
		}
		m := Mem{Base: a}
		if i%3 == 0 {
			pointers = append(pointers, a)
		} else {
			m.Index, m.Scale = stride, uint8(i%3)
		}
		scalars = append(scalars, m)
	}
	return pointers, scalars
}

// eachTile writes a loop over register tiles of the same number of rows, which lie below each
// other.
func eachTile(rows int, tile func()) {
	next := fmt.Sprintf("tile_%d", rows)
	Label(next)
	tile()
	advanceParam("a", loadBytes("tileStride"))
	stride := loadBytes("stride")
	IMUL3Q(Imm(uint64(rows)), stride, stride)
	advanceParam("c", stride)
	tiles := Load(Param("tiles"), GP64())
	DECQ(tiles)
	Store(tiles, Param("tiles"))
	JNZ(LabelRef(next))
}

// advanceParam adds to an address among the parameters.
func advanceParam(name string, by Op) {
	address := Load(Param(name), GP64())
	ADDQ(by, address)
	Store(address, Param(name))
}

// multiply writes the microkernel with a strided left factor and all epilogues.
func multiply(t target) {
	name := "multiplyTiles" + t.suffix
	TEXT(name, NOSPLIT, "func(rows, tiles, depth int, a *float32, rowStride, depthStride, tileStride int, b, c *float32, stride int, bias *float32, f int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is the microkernel for tiles of 1 to %d rows each.", name, t.rows))
	byTiles(t.rows, func(rows int) {
		depth := Load(Param("depth"), GP64())
		a := Load(Param("a"), GP64()).(GPVirtual)
		rowStride, depthStride := loadBytes("rowStride"), loadBytes("depthStride")
		b := Load(Param("b"), GP64())
		pointers, scalars := rowAddresses(rows, a, rowStride)
		c := Load(Param("c"), GP64()).(GPVirtual)
		stride := loadBytes("stride")
		s := newAccumulators(t, rows)
		s.prefetch(c, stride)
		advance := func() {
			for _, p := range pointers {
				ADDQ(depthStride, p)
			}
		}
		unrolledByTwo(rows, depth, func() {
			if len(s.rows[0]) > 1 { // only where loads are not the bottleneck
				PREFETCHT0(Mem{Base: pointers[0], Index: depthStride, Scale: 8})
			}
			s.step(scalars, Mem{Base: b})
			advance()
			s.step(scalars, Mem{Base: b, Disp: panelColumns * bytes})
			advance()
			ADDQ(Imm(2*panelColumns*bytes), b)
		}, func() { s.step(scalars, Mem{Base: b}) })

		f := Load(Param("f"), GP64())
		bias := Load(Param("bias"), GP64())
		s.finish(c, stride, bias, f)
	})
}

// multiplyPair writes the microkernel for two panels side by side, which loads each scalar of the
// left factor once for both.
func multiplyPair(t target) {
	name := "multiplyPair" + t.suffix
	TEXT(name, NOSPLIT, "func(rows, tiles, depth int, a *float32, rowStride, depthStride, tileStride int, b *float32, panel int, c *float32, stride int, bias *float32, f int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is multiplyTiles%s for two panels, the second panel elements after the first.", name, t.suffix))
	byTiles(t.rows, func(rows int) {
		depth := Load(Param("depth"), GP64())
		a := Load(Param("a"), GP64()).(GPVirtual)
		rowStride, depthStride := loadBytes("rowStride"), loadBytes("depthStride")
		b := Load(Param("b"), GP64())
		pointers, scalars := rowAddresses(rows, a, rowStride)
		pairTile(t, rows, depth, b, func(int) []Mem { return scalars }, func() {
			for _, p := range pointers {
				ADDQ(depthStride, p)
			}
		}, func() {})
	})
}

// pairTile writes the steps of a tile of two panels, which start at b, and its epilogue. left
// returns the scalars of the first or second step of a pair; step and pair are called after each
// step and each pair.
func pairTile(t target, rows int, depth, b Register, left func(n int) []Mem, step, pair func()) {
	const line = panelColumns * bytes
	c := Load(Param("c"), GP64()).(GPVirtual)
	s := newWideAccumulators(t, rows, 2*panelColumns)
	s.prefetch(c, loadBytes("stride"))
	panel := loadBytes("panel")
	one := func(n int) {
		s.stepHalves(left(n), Mem{Base: b, Disp: n * line}, Mem{Base: b, Index: panel, Scale: 1, Disp: n * line})
		step()
	}
	unrolledByTwo(rows, depth, func() {
		one(0)
		one(1)
		pair()
		ADDQ(Imm(2*line), b)
	}, func() { one(0) })

	c = Load(Param("c"), GP64()).(GPVirtual)
	stride, f := loadBytes("stride"), Load(Param("f"), GP64())
	bias := Load(Param("bias"), GP64())
	s.finish(c, stride, bias, f)
}

// packedAhead is the number of depths, one cache line each, by which multiplyPacked prefetches the
// left factor. Groups follow each other in memory, so the prefetch reaches into the next one.
const packedAhead = 16

// multiplyPacked writes multiplyPair for a packed left factor, which has a cache line for each
// depth.
func multiplyPacked(t target) {
	name := "multiplyPacked" + t.suffix
	TEXT(name, NOSPLIT, "func(rows, tiles, depth int, a *float32, tileStride int, b *float32, panel int, c *float32, stride int, bias *float32, f int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is multiplyPair%s for a packed left factor, a cache line for each depth.", name, t.suffix))
	byTiles(t.rows, func(rows int) {
		depth := Load(Param("depth"), GP64())
		a, b := Load(Param("a"), GP64()), Load(Param("b"), GP64())
		const line = panelColumns * bytes
		pairTile(t, rows, depth, b, func(n int) []Mem {
			PREFETCHT0(Mem{Base: a, Disp: (n + packedAhead) * line})
			scalars := make([]Mem, rows)
			for i := range scalars {
				scalars[i] = Mem{Base: a, Disp: n*line + i*bytes}
			}
			return scalars
		}, func() {}, func() { ADDQ(Imm(2*line), a) })
	})
}

// multiplyPanels writes the microkernel for a right factor that is read in place.
func multiplyPanels(t target) {
	name := "multiplyPanels" + t.suffix
	TEXT(name, NOSPLIT, "func(rows, panels, depth int, a *float32, depthStride int, b *float32, stride int, sums *float32, width int, add bool)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is multiplyInPlace for 1 to %d rows.", name, t.rows))
	byRowCount(t.rows, func(rows int) {
		panel, start, step := fmt.Sprintf("panel_%d", rows), fmt.Sprintf("start_%d", rows), fmt.Sprintf("step_%d", rows)
		Label(panel)
		s := newAccumulators(t, rows)
		sums, width := Load(Param("sums"), GP64()).(GPVirtual), loadBytes("width")
		add := Load(Param("add"), GP8())
		TESTB(add, add)
		JZ(LabelRef(start))
		s.each(sums, width, func(sum VecVirtual, at Mem) { VMOVUPS(at, sum) })
		Label(start)
		depth, a, b := Load(Param("depth"), GP64()), Load(Param("a"), GP64()), Load(Param("b"), GP64())
		depthStride, stride, ahead := loadBytes("depthStride"), loadBytes("stride"), GP64()
		MOVQ(stride, ahead)
		IMULQ(depth, ahead)
		scalars := make([]Mem, rows)
		for i := range scalars {
			scalars[i] = Mem{Base: a, Disp: i * bytes}
		}
		Label(step)
		PREFETCHT1(Mem{Base: b, Index: ahead, Scale: 1}) // the next call's
		s.step(scalars, Mem{Base: b})
		ADDQ(depthStride, a)
		ADDQ(stride, b)
		DECQ(depth)
		JNZ(LabelRef(step))
		s.each(sums, width, func(sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
		advanceParam("b", Imm(panelColumns*bytes))
		advanceParam("sums", Imm(panelColumns*bytes))
		panels := Load(Param("panels"), GP64())
		DECQ(panels)
		Store(panels, Param("panels"))
		JNZ(LabelRef(panel))
	})
}

// finish writes the epilogues selected by the flags f, and stores the sums. If the bias is per row,
// it advances to the rows of the next tile.
func (s accumulators) finish(c, stride GPVirtual, bias, f Register) {
	ifFlag(f, flagAccumulate, len(s.rows), func() {
		s.each(c, stride, func(sum VecVirtual, at Mem) { VADDPS(at, sum, sum) })
	})
	ifFlag(f, flagBiasRow, len(s.rows), func() {
		s.addToRows(bias)
		advanceParam("bias", Imm(uint64(len(s.rows)*bytes)))
	})
	ifFlag(f, flagBiasColumn, len(s.rows), func() { s.addToColumns(bias) })
	ifFlag(f, flagReLU, len(s.rows), s.rectify)
	ifFlag(f, flagCeiling, len(s.rows), func() { s.limit(f) })
	s.each(c, stride, func(sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
}

// ifFlag writes code that runs if a flag is set.
func ifFlag(f Register, flag uint32, rows int, then func()) {
	after := fmt.Sprintf("after_flag%d_%d", flag, rows)
	TESTQ(U32(flag), f)
	JZ(LabelRef(after))
	then()
	Label(after)
}

// multiplyTable writes the microkernel with a left factor addressed by tables.
func multiplyTable(t target) { multiplyTaps(t, "multiplyTable", t.table, 1) }

// multiplyTaps writes the microkernel for up to most rows whose left factor is addressed by tables.
// Each row is a group of taps consecutive in memory, which are rows of the sums and share an
// address register.
func multiplyTaps(t target, name string, most, taps int) {
	name += t.suffix
	TEXT(name, NOSPLIT, "func(rows, depth int, data *float32, rowOffsets, depthOffsets *int32, b, c *float32, stride int, accumulate bool)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is multiplyTaps for a tile of 1 to %d rows with %d taps each.", name, most, taps))
	byRowCount(most, func(rows int) {
		data := Load(Param("data"), GP64())
		offsets := Load(Param("rowOffsets"), GP64())
		pointers := make([]GPVirtual, rows)
		for i := range pointers {
			pointers[i] = GP64()
			MOVLQSX(Mem{Base: offsets, Disp: i * taps * bytes}, pointers[i])
			LEAQ(Mem{Base: data, Index: pointers[i], Scale: bytes}, pointers[i])
		}
		s := newAccumulators(t, rows*taps)
		c, stride := Load(Param("c"), GP64()).(GPVirtual), loadBytes("stride")
		s.prefetch(c, stride)
		depth := Load(Param("depth"), GP64())
		table := Load(Param("depthOffsets"), GP64())
		b := Load(Param("b"), GP64())
		step := func(n int) {
			at := GP64()
			MOVLQSX(Mem{Base: table, Disp: n * bytes}, at)
			var scalars []Mem
			for _, p := range pointers {
				for tap := range taps {
					scalars = append(scalars, Mem{Base: p, Index: at, Scale: bytes, Disp: tap * bytes})
				}
			}
			s.step(scalars, Mem{Base: b, Disp: n * panelColumns * bytes})
		}
		unrolledByTwo(rows, depth, func() {
			step(0)
			step(1)
			ADDQ(Imm(2*bytes), table)
			ADDQ(Imm(2*panelColumns*bytes), b)
		}, func() { step(0) })

		c, stride = Load(Param("c"), GP64()).(GPVirtual), loadBytes("stride")
		accumulate, accumulated := Load(Param("accumulate"), GP8()), fmt.Sprintf("accumulated_%d", rows)
		TESTB(accumulate, accumulate)
		JZ(LabelRef(accumulated))
		s.each(c, stride, func(sum VecVirtual, at Mem) { VADDPS(at, sum, sum) })
		Label(accumulated)
		s.each(c, stride, func(sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
	})
}
