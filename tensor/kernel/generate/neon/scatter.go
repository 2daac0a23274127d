package main

import (
	"fmt"

	. "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"
)

// scatter writes the products of a panel with all taps of some channels. The left factor is packed.
func scatter(file *File) {
	f := file.Function("scatter", "func(rows, depth, taps int, a *float32, skip int, b, c0, c1 *float32, offsets *int32, plane int)",
		fmt.Sprintf("is scatterPanel for 1 to %d channels; skip is how much of a lies between two taps.", maxRows))
	byRows(f, func(rows int) {
		taps, a, skip, offsets := f.Param("taps"), f.Param("a"), f.Bytes("skip"), f.Param("offsets")
		tap := fmt.Sprintf("tap_%d", rows)
		f.Label(tap)
		depth, b := f.Param("depth"), f.Param("b")
		t := newTile(f, rows)
		steps := func(count int) {
			for step := range count {
				t.multiplyAdd(t.across(place{a, step * rows * bytes}), place{b, step * panelColumns * bytes}.row())
			}
			f.Go("ADD $%d, R%d", count*rows*bytes, a)
			f.Go("ADD $%d, R%d", count*panelColumns*bytes, b)
		}
		t.inSteps("deep", 2, depth, func() { steps(2) }, func() { steps(1) })

		at, plane := next(f, offsets), f.Bytes("plane")
		var lines [2]place
		for h, name := range []string{"c0", "c1"} {
			lines[h] = place{f.Param(name), 0}
			f.Go("ADD R%d<<2, R%d", at, lines[h].base)
		}
		// Both halves may be in the same line, so the second is read after the first is written.
		t.each(lines, plane, func(row []V, half int, at place) {
			t.addHalf(row, half, at)
			t.storePair(row[2*half], row[2*half+1], at)
		})
		f.Go("ADD R%d, R%d", skip, a)
		f.Go("SUBS $1, R%d", taps)
		f.Go("BNE %s", tap)
	})
}
