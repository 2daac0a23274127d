package main

import (
	"fmt"

	. "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"
)

// dotRows writes inner products of one vector with rows of a matrix. A sum has sixteen lanes in
// four registers; the sums of four rows fill sixteen registers.
func dotRows(file *File) {
	f := file.Function("dotRows", "func(sums, x, rows *float32, distance, depth, count int)",
		"multiplies x by rows of the same length, a multiple of sixteen, that are distance elements apart.")
	sums, rows, distance, depth, count := f.Param("sums"), f.Param("rows"), f.Bytes("distance"), f.Param("depth"), f.Param("count")
	for height := 4; height > 0; height -= 3 {
		next, loop, after := fmt.Sprintf("rows_%d", height), fmt.Sprintf("depth_%d", height), fmt.Sprintf("after_%d", height)
		f.Label(next)
		f.Go("CMP $%d, R%d", height, count)
		f.Go("BLT %s", after)
		t, x, first, k := newTile(f, height), f.Param("x"), f.General(), f.General()
		f.Go("MOVD R%d, R%d", rows, first)
		f.Go("MOVD R%d, R%d", depth, k)
		pointers := rowAddresses(f, height, first, distance)
		f.Label(loop)
		for half := range 2 {
			at := half * vector * bytes
			a := t.loadPair(place{x, at})
			for i, p := range pointers {
				for n, v := range t.loadPair(place{p, at}) {
					f.Arm("fmla v%d.4s, v%d.4s, v%d.4s", t.rows[i][2*half+n], a[n], v)
				}
			}
		}
		for _, p := range append(pointers, x) {
			f.Go("ADD $%d, R%d", panelColumns*bytes, p)
		}
		f.Go("SUBS $%d, R%d", panelColumns, k)
		f.Go("BNE %s", loop)
		for _, row := range t.rows {
			four := f.Of("fadd v%d.4s, v%d.4s, v%d.4s", f.Of("fadd v%d.4s, v%d.4s, v%d.4s", row[0], row[2]),
				f.Of("fadd v%d.4s, v%d.4s, v%d.4s", row[1], row[3]))
			upper := f.Of("ext v%d.16b, v%d.16b, v%d.16b, #8", four, four)
			two := f.Of("fadd v%d.4s, v%d.4s, v%d.4s", four, upper)
			f.Arm("str s%d, [x%d], #%d", f.Of("faddp s%d, v%d.2s", two), sums, bytes)
		}
		for range height {
			f.Go("ADD R%d, R%d", distance, rows)
		}
		f.Go("SUB $%d, R%d", height, count)
		f.Go("B %s", next)
		f.Label(after)
	}
	f.Go("RET")
}
