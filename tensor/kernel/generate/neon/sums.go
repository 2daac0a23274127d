package main

import (
	"fmt"

	. "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"
)

// tile is a register tile: for each row, the four vectors of its columns.
type tile struct {
	*Function
	rows [][]V
}

func newTile(f *Function, rows int) tile {
	t := tile{Function: f}
	for range rows {
		var row []V
		for range panelColumns / lanes {
			row = append(row, f.Zero())
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// scalar is one lane of a vector.
type scalar struct {
	v    V
	lane int
}

// multiplyAdd adds the products of one depth: each row's scalar times the panel's row, whose halves
// are at two places. Two vectors of the row are in registers at a time.
func (t tile) multiplyAdd(scalars []scalar, halves [2]place) {
	for h, half := range halves {
		pair := t.loadPair(half)
		for i, row := range t.rows {
			for n, v := range pair {
				t.Arm("fmla v%d.4s, v%d.4s, v%d.s[%d]", row[2*h+n], v, scalars[i].v, scalars[i].lane)
			}
		}
	}
}

// place is an address: a register plus a number of bytes.
type place struct {
	base  X
	bytes int
}

// row returns the two halves of a panel's row, which are contiguous.
func (p place) row() [2]place {
	return [2]place{p, {p.base, p.bytes + vector*bytes}}
}

// loadPair loads eight float32.
func (t tile) loadPair(at place) [2]V {
	pair := [2]V{t.Vector(), t.Vector()}
	t.Arm("ldp q%d, q%d, [x%d, #%d]", pair[0], pair[1], at.base, at.bytes)
	return pair
}

func (t tile) storePair(a, b V, at place) { t.Arm("stp q%d, q%d, [x%d, #%d]", a, b, at.base, at.bytes) }

// addHalf adds to half of a row the contents of a place.
func (t tile) addHalf(row []V, half int, at place) {
	for n, v := range t.loadPair(at) {
		t.Arm("fadd v%d.4s, v%d.4s, v%d.4s", row[2*half+n], row[2*half+n], v)
	}
}

// each visits the halves of all rows with their addresses in an output with separate halves.
func (t tile) each(halves [2]place, stride X, visit func(row []V, half int, at place)) {
	var at [2]place
	for h, half := range halves {
		at[h] = place{t.General(), half.bytes}
		t.Go("MOVD R%d, R%d", half.base, at[h].base)
	}
	for i, row := range t.rows {
		for h := range at {
			visit(row, h, at[h])
			if i+1 < len(t.rows) {
				t.Go("ADD R%d, R%d", stride, at[h].base)
			}
		}
	}
}

// load replaces the sums by the contents of an output with separate halves.
func (t tile) load(halves [2]place, stride X) {
	t.each(halves, stride, func(row []V, half int, at place) {
		t.Arm("ldp q%d, q%d, [x%d, #%d]", row[2*half], row[2*half+1], at.base, at.bytes)
	})
}

func (t tile) add(halves [2]place, stride X) { t.each(halves, stride, t.addHalf) }

func (t tile) store(halves [2]place, stride X) {
	t.each(halves, stride, func(row []V, half int, at place) { t.storePair(row[2*half], row[2*half+1], at) })
}

// addToRows adds a number to each row.
func (t tile) addToRows(bias X) {
	for _, row := range t.rows {
		b := t.Vector()
		t.Arm("ld1r {v%d.4s}, [x%d], #4", b, bias)
		for _, sum := range row {
			t.Arm("fadd v%d.4s, v%d.4s, v%d.4s", sum, sum, b)
		}
	}
}

// addToColumns adds a number to each column.
func (t tile) addToColumns(bias X) {
	for h, half := range (place{bias, 0}).row() {
		pair := t.loadPair(half)
		for _, row := range t.rows {
			for n, v := range pair {
				t.Arm("fadd v%d.4s, v%d.4s, v%d.4s", row[2*h+n], row[2*h+n], v)
			}
		}
	}
}

// rectify replaces negative sums by zero; NaN and negative zero stay.
func (t tile) rectify() {
	for _, row := range t.rows {
		for _, sum := range row {
			below := t.Vector()
			t.Arm("fcmlt v%d.4s, v%d.4s, #0.0", below, sum)
			t.Arm("bic v%d.16b, v%d.16b, v%d.16b", sum, sum, below)
		}
	}
}

// limit replaces sums above the ceiling, the upper half of the flags, by it.
func (t tile) limit(flags X) {
	bits, ceiling := t.General(), t.Vector()
	t.Go("LSR $%d, R%d, R%d", ceilingBit, flags, bits)
	t.Arm("dup v%d.4s, w%d", ceiling, bits)
	for _, row := range t.rows {
		for _, sum := range row {
			t.Arm("bit v%d.16b, v%d.16b, v%d.16b", sum, ceiling, t.Of("fcmgt v%d.4s, v%d.4s, v%d.4s", sum, ceiling))
		}
	}
}

// Bits of flags in package kernel.
const (
	flagAccumulate = iota
	flagBiasRow
	flagBiasColumn
	flagReLU
	flagCeiling
	ceilingBit = 32 // the ceiling's position
)

// when writes code that runs if a flag is set.
func (t tile) when(flags X, flag int, then func()) {
	after := fmt.Sprintf("after_flag%d_%d", flag, len(t.rows))
	t.Go("TBZ $%d, R%d, %s", flag, flags, after)
	then()
	t.Label(after)
}

// byRows writes a body for each number of rows, and the branches to the body for the parameter
// rows.
func byRows(f *Function, body func(rows int)) {
	rows := f.Param("rows")
	for n := maxRows; n > 1; n-- {
		f.Go("CMP $%d, R%d", n, rows)
		f.Go("BEQ %s", fmt.Sprintf("rows_%d", n))
	}
	for n := 1; n <= maxRows; n++ {
		if n > 1 {
			f.Label(fmt.Sprintf("rows_%d", n))
		}
		body(n)
		f.Go("RET")
	}
}

// inSteps writes a loop over the depth. several writes the code for count steps, one that for each
// of the remaining steps.
func (t tile) inSteps(name string, count int, depth X, several, one func()) {
	name = fmt.Sprintf("%s_%d", name, len(t.rows))
	t.Go("SUBS $%d, R%d", count, depth)
	t.Go("BLT %s", name+"_rest")
	t.Label(name)
	several()
	t.Go("SUBS $%d, R%d", count, depth)
	t.Go("BGE %s", name)
	t.Label(name + "_rest")
	t.Go("ADDS $%d, R%d", count, depth)
	t.Go("BEQ %s", name+"_end")
	t.Label(name + "_one")
	one()
	t.Go("SUBS $1, R%d", depth)
	t.Go("BNE %s", name+"_one")
	t.Label(name + "_end")
}
