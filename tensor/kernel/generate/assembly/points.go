package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// multiplyPoints writes the products of some tiles at all points of Winograd's algorithms, by one
// or two panels. All tiles at a point come before the next point, so that the panels are read from
// the second-level cache once. Each step also prefetches: from the panels of the next point the row
// that it reads from the current ones, and from the left factor of the next tile one cache line, so
// that all steps cover the factor if its rows are contiguous.
func multiplyPoints(t target, panels int) {
	name := [...]string{1: "multiplyPoints", 2: "multiplyPointPairs"}[panels] + t.suffix
	TEXT(name, NOSPLIT, "func(rows, tiles, points, depth int, a *float32, rowA, pointA int, b *float32, pointB, panel int, c *float32, rowC, pointC int)")
	Pragma("noescape")
	what := "panel"
	if panels == 2 {
		what = "pair of panels, the second panel elements after the first"
	}
	Doc(fmt.Sprintf("%s multiplies tiles of 1 to %d rows each by a %s, at each point. pointA, pointB and pointC are the strides between points, in elements.", name, t.rows, what))
	byRowCount(t.rows, func(rows int) {
		label := func(s string) string { return fmt.Sprintf("%s_%d", s, rows) }
		Label(label("point"))
		first, c, tiles := Load(Param("a"), GP64()).(GPVirtual), Load(Param("c"), GP64()).(GPVirtual), Load(Param("tiles"), GP64())
		Label(label("tile"))
		left := GP64()
		MOVQ(first, left)
		stride, height := loadBytes("rowA"), GP64()
		IMUL3Q(Imm(uint64(rows)), stride, height)
		ADDQ(height, first)
		ahead := GP64()
		MOVQ(first, ahead)
		DECQ(tiles)
		JNZ(LabelRef(label("same")))
		Load(Param("a"), ahead)
		ADDQ(loadBytes("pointA"), ahead)
		Label(label("same"))
		pointers, scalars := rowAddresses(rows, left, stride)
		right, next := Load(Param("b"), GP64()), loadBytes("pointB")
		ADDQ(right, next)
		s := newWideAccumulators(t, rows, panels*panelColumns)
		second := GP64()
		if panels == 2 {
			second = loadBytes("panel")
		}
		step := func(n int) {
			const line = panelColumns * bytes
			from := Mem{Base: right, Disp: n * line}
			ahead := []Mem{{Base: ahead, Disp: n * line}, {Base: next, Disp: n * line}}
			now := make([]Mem, rows)
			for i, m := range scalars {
				now[i] = m.Offset(n * bytes)
			}
			if panels == 2 {
				other := ahead[1]
				other.Index, other.Scale = second, 1
				ahead = append(ahead, other)
			}
			for _, m := range ahead {
				PREFETCHT0(m)
			}
			if panels == 2 {
				s.stepHalves(now, from, Mem{Base: right, Index: second, Scale: 1, Disp: n * line})
			} else {
				s.step(now, from)
			}
		}
		advance := func(steps int) {
			for _, p := range pointers {
				ADDQ(Imm(uint64(steps*bytes)), p)
			}
			for _, p := range []Op{right, next, ahead} {
				ADDQ(U32(uint32(steps*panelColumns*bytes)), p)
			}
		}
		depth := Load(Param("depth"), GP64())
		const few = 4
		SUBQ(Imm(few), depth)
		JL(LabelRef(label("rest")))
		Label(label("few"))
		for n := range few {
			step(n)
		}
		advance(few)
		SUBQ(Imm(few), depth)
		JGE(LabelRef(label("few")))
		Label(label("rest"))
		ADDQ(Imm(few), depth)
		JZ(LabelRef(label("end")))
		Label(label("one"))
		step(0)
		advance(1)
		DECQ(depth)
		JNZ(LabelRef(label("one")))
		Label(label("end"))

		below := loadBytes("rowC")
		s.each(c, below, func(sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
		IMUL3Q(Imm(uint64(rows)), below, below)
		ADDQ(below, c)
		TESTQ(tiles, tiles)
		JNZ(LabelRef(label("tile")))

		advanceParam("a", loadBytes("pointA"))
		advanceParam("b", loadBytes("pointB"))
		advanceParam("c", loadBytes("pointC"))
		points := Load(Param("points"), GP64())
		DECQ(points)
		Store(points, Param("points"))
		JNZ(LabelRef(label("point")))
	})
}
