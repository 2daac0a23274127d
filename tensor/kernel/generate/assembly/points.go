package assembly

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// multiplyPoints writes the products of some rows at all points of Winograd's algorithms, by a panel or two. The factors of the next point
// are prefetched: of the right one what a step reads, of the left one a cache line a step, which are all of it where its rows are side by side.
func multiplyPoints(t target, panels int) {
	name := [...]string{1: "multiplyPoints", 2: "multiplyPointPairs"}[panels] + t.suffix
	TEXT(name, NOSPLIT, "func(rows, points, depth int, a *float32, rowA, pointA int, b *float32, pointB, panel int, c *float32, rowC, pointC int)")
	Pragma("noescape")
	what := "panel"
	if panels == 2 {
		what = "two panels, the second of which lies panel elements behind the first"
	}
	Doc(fmt.Sprintf("%s multiplies 1 to %d rows by a %s, at each point. Arguments of point are numbers from one to the next.", name, t.rows, what))
	byRows(t.rows, func(rows int) {
		label := func(s string) string { return fmt.Sprintf("%s_%d", s, rows) }
		a, b := Load(Param("a"), GP64()), Load(Param("b"), GP64())
		Label(label("point"))
		first, ahead := GP64(), GP64()
		MOVQ(a, first)
		ADDQ(loadBytes("pointA"), a)
		MOVQ(a, ahead)
		pointers, scalars := rowAddresses(rows, first, loadBytes("rowA"))
		right, next := GP64(), GP64()
		MOVQ(b, right)
		ADDQ(loadBytes("pointB"), b)
		MOVQ(b, next)
		s := newWideSums(t, rows, panels*panelColumns)
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

		c := Load(Param("c"), GP64()).(GPVirtual)
		s.each(c, loadBytes("rowC"), func(sum VecVirtual, at Mem) { VMOVUPS(sum, at) })
		ADDQ(loadBytes("pointC"), c)
		Store(c, Param("c"))
		points := Load(Param("points"), GP64())
		DECQ(points)
		Store(points, Param("points"))
		JNZ(LabelRef(label("point")))
	})
}
