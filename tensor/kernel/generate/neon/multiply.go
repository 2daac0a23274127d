package main

import (
	"fmt"

	. "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"
)

// multiplyTiles writes the microkernel with a strided left factor and all epilogues.
func multiplyTiles(file *File) {
	f := file.Function("multiplyTiles",
		"func(rows, tiles, depth int, a *float32, rowStride, depthStride, tileStride int, b, c *float32, stride int, bias *float32, f int)",
		fmt.Sprintf("is multiply for tiles of 1 to %d rows each, whose left factor has a stride of 1 along its depth or from row to row.", maxRows))
	byRows(f, func(rows int) {
		tiles, next := f.Param("tiles"), fmt.Sprintf("tile_%d", rows)
		f.Label(next)
		multiplyTile(f, rows)
		f.Advance("a", f.Bytes("tileStride"))
		below, stride := f.General(), f.Bytes("stride")
		f.Go("MOVD $%d, R%d", rows, below)
		f.Go("MUL R%d, R%d", stride, below)
		f.Advance("c", below)
		f.Go("SUBS $1, R%d", tiles)
		f.Go("BNE %s", next)
	})
}

// multiplyTile writes one register tile of multiplyTiles. If the bias is per row, it advances to
// the rows of the next tile.
func multiplyTile(f *Function, rows int) {
	depth, a, rowStride, depthStride, b := f.Param("depth"), f.Param("a"), f.Bytes("rowStride"), f.Bytes("depthStride"), f.Param("b")
	t := newTile(f, rows)
	across, end := fmt.Sprintf("across_%d", rows), fmt.Sprintf("end_%d", rows)
	f.Go("CMP $%d, R%d", bytes, depthStride)
	f.Go("BNE %s", across)
	pointers := rowAddresses(f, rows, a, rowStride)
	t.inSteps("along", lanes, depth, func() {
		t.along(pointers, func(step int) [2]place { return place{b, step * panelColumns * bytes}.row() })
		f.Go("ADD $%d, R%d", lanes*panelColumns*bytes, b)
	}, func() {
		t.multiplyAdd(t.oneEach(pointers), place{b, 0}.row())
		f.Go("ADD $%d, R%d", panelColumns*bytes, b)
	})
	f.Go("B %s", end)
	f.Label(across)
	t.inSteps("deep", 2, depth, func() {
		for step := range 2 {
			t.multiplyAdd(t.across(place{a, 0}), place{b, step * panelColumns * bytes}.row())
			f.Go("ADD R%d, R%d", depthStride, a)
		}
		f.Go("ADD $%d, R%d", 2*panelColumns*bytes, b)
	}, func() {
		t.multiplyAdd(t.across(place{a, 0}), place{b, 0}.row())
		f.Go("ADD R%d, R%d", depthStride, a)
		f.Go("ADD $%d, R%d", panelColumns*bytes, b)
	})
	f.Label(end)

	c, stride, flags := place{f.Param("c"), 0}.row(), f.Bytes("stride"), f.Param("f")
	t.when(flags, flagAccumulate, func() { t.add(c, stride) })
	t.when(flags, flagBiasRow, func() {
		bias := f.Param("bias")
		t.addToRows(bias) // advances bias
		f.Keep("bias", bias)
	})
	t.when(flags, flagBiasColumn, func() { t.addToColumns(f.Param("bias")) })
	t.when(flags, flagReLU, t.rectify)
	t.when(flags, flagCeiling, func() { t.limit(flags) })
	t.store(c, stride)
}

// rowAddresses returns pointers to the rows of the left factor.
func rowAddresses(f *Function, rows int, a, stride X) []X {
	pointers := []X{a}
	for i := 1; i < rows; i++ {
		next := f.General()
		f.Go("ADD R%d, R%d, R%d", stride, pointers[i-1], next)
		pointers = append(pointers, next)
	}
	return pointers
}

// along multiplies four steps of the depth whose scalars are contiguous in each row. panel returns
// the address of a step's row of the panel.
func (t tile) along(pointers []X, panel func(step int) [2]place) {
	scalars := make([]scalar, len(pointers))
	for i, p := range pointers {
		scalars[i].v = t.Vector()
		t.Arm("ldr q%d, [x%d], #%d", scalars[i].v, p, lanes*bytes)
	}
	for step := range lanes {
		for i := range scalars {
			scalars[i].lane = step
		}
		t.multiplyAdd(scalars, panel(step))
	}
}

// oneEach loads one scalar per row.
func (t tile) oneEach(pointers []X) []scalar {
	scalars := make([]scalar, len(pointers))
	for i, p := range pointers {
		scalars[i].v = t.Vector()
		t.Arm("ldr s%d, [x%d], #%d", scalars[i].v, p, bytes)
	}
	return scalars
}

// across loads the scalars of one depth, which are contiguous.
func (t tile) across(at place) (scalars []scalar) {
	for left := len(t.rows); left > 0; {
		v, count, size := t.Vector(), 1, "s"
		switch {
		case left >= 4:
			count, size = 4, "q"
		case left >= 2:
			count, size = 2, "d"
		}
		t.Arm("ldr "+size+"%d, [x%d, #%d]", v, at.base, at.bytes+len(scalars)*bytes)
		for lane := range count {
			scalars = append(scalars, scalar{v, lane})
		}
		left -= count
	}
	return scalars
}

// multiplyPanels writes the microkernel for a right factor that is read in place.
func multiplyPanels(file *File) {
	f := file.Function("multiplyPanels",
		"func(rows, panels, depth int, a *float32, depthStride int, b *float32, stride int, sums *float32, width int, add bool)",
		fmt.Sprintf("is multiplyInPlace for 1 to %d rows.", maxRows))
	byRows(f, func(rows int) {
		panel, step := fmt.Sprintf("panel_%d", rows), fmt.Sprintf("step_%d", rows)
		f.Label(panel)
		t := newTile(f, rows)
		sums, width := place{f.Param("sums"), 0}.row(), f.Bytes("width")
		t.when(f.Param("add"), 0, func() { t.load(sums, width) })
		depth, a, depthStride, b, stride := f.Param("depth"), f.Param("a"), f.Bytes("depthStride"), f.Param("b"), f.Bytes("stride")
		f.Label(step)
		t.multiplyAdd(t.across(place{a, 0}), place{b, 0}.row())
		f.Go("ADD R%d, R%d", depthStride, a)
		f.Go("ADD R%d, R%d", stride, b)
		f.Go("SUBS $1, R%d", depth)
		f.Go("BNE %s", step)
		t.store(sums, width)
		line := f.General()
		f.Go("MOVD $%d, R%d", panelColumns*bytes, line)
		f.Advance("b", line)
		f.Advance("sums", line)
		panels := f.Param("panels")
		f.Go("SUBS $1, R%d", panels)
		f.Keep("panels", panels)
		f.Go("BNE %s", panel)
	})
}

// multiplyTable writes the microkernel with a left factor addressed by tables.
func multiplyTable(file *File) {
	f := file.Function("multiplyTabled",
		"func(rows, depth int, data *float32, rowOffsets, depthOffsets *int32, b, c *float32, stride int, accumulate bool)",
		fmt.Sprintf("is multiplyTable for a tile of 1 to %d rows.", maxRows))
	byRows(f, func(rows int) {
		data, offsets := f.Param("data"), f.Param("rowOffsets")
		pointers := make([]X, rows)
		for i := range pointers {
			pointers[i] = indexed(f, offsets, data)
		}
		t := newTile(f, rows)
		depth, table, b := f.Param("depth"), f.Param("depthOffsets"), f.Param("b")
		step := func(panel place) {
			at := next(f, table)
			scalars := make([]scalar, rows)
			for i, p := range pointers {
				scalars[i].v = f.Vector()
				f.Arm("ldr s%d, [x%d, x%d, lsl #2]", scalars[i].v, p, at)
			}
			t.multiplyAdd(scalars, panel.row())
		}
		t.inSteps("deep", 2, depth, func() {
			step(place{b, 0})
			step(place{b, panelColumns * bytes})
			f.Go("ADD $%d, R%d", 2*panelColumns*bytes, b)
		}, func() {
			step(place{b, 0})
			f.Go("ADD $%d, R%d", panelColumns*bytes, b)
		})
		c, stride, accumulate := place{f.Param("c"), 0}.row(), f.Bytes("stride"), f.Param("accumulate")
		t.when(accumulate, 0, func() { t.add(c, stride) })
		t.store(c, stride)
	})
}

// next loads an int32 from a table and advances the table.
func next(f *Function, table X) X {
	v := f.General()
	f.Go("MOVW.P %d(R%d), R%d", bytes, table, v)
	return v
}

// indexed returns pointer plus the next int32 of a table, which counts float32.
func indexed(f *Function, table, pointer X) X {
	v := next(f, table)
	f.Go("ADD R%d<<2, R%d, R%d", v, pointer, v)
	return v
}

// multiplyWindows writes the microkernel for a run of panels whose right factor is read in place.
func multiplyWindows(file *File) {
	f := file.Function("multiplyWindows",
		"func(rows, panels, depth int, a *float32, rowStride int, padded *float32, places, taps *int32, y *float32, plane int, bias *float32, f int)",
		fmt.Sprintf("is multiplyWindows for 1 to %d rows. places holds, for each panel, those of its halves in padded and those in y.", maxRows))
	byRows(f, func(rows int) {
		panels, places := f.Param("panels"), f.Param("places")
		panel := fmt.Sprintf("panel_%d", rows)
		f.Label(panel)
		pointers := rowAddresses(f, rows, f.Param("a"), f.Bytes("rowStride"))
		padded := f.Param("padded")
		bases := [2]X{indexed(f, places, padded), indexed(f, places, padded)}
		taps, depth := f.Param("taps"), f.Param("depth")
		t := newTile(f, rows)
		window := func(int) (halves [2]place) {
			tap := next(f, taps)
			for h, base := range bases {
				halves[h] = place{f.General(), 0}
				f.Go("ADD R%d<<2, R%d, R%d", tap, base, halves[h].base)
			}
			return halves
		}
		t.inSteps("along", lanes, depth, func() { t.along(pointers, window) }, func() {
			t.multiplyAdd(t.oneEach(pointers), window(0))
		})

		y, plane, flags := f.Param("y"), f.Bytes("plane"), f.Param("f")
		outputs := [2]place{{indexed(f, places, y), 0}, {indexed(f, places, y), 0}}
		// Read everything before writing: the halves may overlap.
		t.when(flags, flagAccumulate, func() { t.add(outputs, plane) })
		t.when(flags, flagBiasRow, func() { t.addToRows(f.Param("bias")) })
		t.when(flags, flagReLU, t.rectify)
		t.when(flags, flagCeiling, func() { t.limit(flags) })
		t.store(outputs, plane)
		f.Go("SUBS $1, R%d", panels)
		f.Go("BNE %s", panel)
	})
}
