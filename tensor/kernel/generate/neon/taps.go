package main

import (
	"fmt"

	. "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"
)

// tapBlock is the minimum number of outputs that are computed together, tapBlocks the maximum
// number of such blocks whose sums are in registers at a time.
const (
	tapBlock  = panelColumns
	tapBlocks = 4
)

// tapSums writes lines of sums over taps.
func tapSums(file *File) {
	f := file.Function("tapSums", "func(to *float32, blocks int, from *float32, offsets *int32, weights *float32, taps int, epilogue *float32)",
		"is tapLine for blocks of sixteen outputs. epilogue holds the bias, the floor and the ceiling.")
	to, from, blocks, epilogue := f.Param("to"), f.Param("from"), f.Param("blocks"), f.Param("epilogue")
	var scalars [3]V
	for i := range scalars {
		scalars[i] = f.Of("ld1r {v%d.4s}, [x%d], #4", epilogue)
	}
	for _, count := range []int{tapBlocks, 1} {
		next, end, loop := fmt.Sprintf("blocks_%d", count), fmt.Sprintf("end_%d", count), fmt.Sprintf("tap_%d", count)
		f.Label(next)
		f.Go("CMP $%d, R%d", count, blocks)
		f.Go("BLT %s", end)
		sums := make([]V, count*tapBlock/lanes)
		for i := range sums {
			sums[i] = f.Zero()
		}
		offsets, weights, taps := f.Param("offsets"), f.Param("weights"), f.Param("taps")
		f.Label(loop)
		at := indexed(f, offsets, from)
		weight := f.Of("ld1r {v%d.4s}, [x%d], #4", weights)
		for i := 0; i < len(sums); i += 2 {
			for n, v := range (tile{Function: f}).loadPair(place{at, i * lanes * bytes}) {
				f.Arm("fmla v%d.4s, v%d.4s, v%d.4s", sums[i+n], v, weight)
			}
		}
		f.Go("SUBS $1, R%d", taps)
		f.Go("BNE %s", loop)
		for i, sum := range sums {
			f.Arm("fadd v%d.4s, v%d.4s, v%d.4s", sum, sum, scalars[0])
			below := f.Of("fcmgt v%d.4s, v%d.4s, v%d.4s", scalars[1], sum) // false for NaN, which stays
			f.Arm("bit v%d.16b, v%d.16b, v%d.16b", sum, scalars[1], below)
			above := f.Of("fcmgt v%d.4s, v%d.4s, v%d.4s", sum, scalars[2])
			f.Arm("bit v%d.16b, v%d.16b, v%d.16b", sum, scalars[2], above)
			f.Arm("str q%d, [x%d, #%d]", sum, to, i*lanes*bytes)
		}
		f.Go("ADD $%d, R%d", count*tapBlock*bytes, to)
		f.Go("ADD $%d, R%d", count*tapBlock*bytes, from)
		f.Go("SUB $%d, R%d", count, blocks)
		f.Go("B %s", next)
		f.Label(end)
	}
	f.Go("RET")
}

// tapProducts writes the products of a line with the lines that taps read.
func tapProducts(file *File) {
	f := file.Function("tapProductsOf", "func(sums, line *float32, blocks int, from *float32, offsets *int32, rows int, add bool)",
		fmt.Sprintf("is tapProducts for 1 to %d taps, the parameter rows.", maxRows))
	byRows(f, func(taps int) {
		from, offsets := f.Param("from"), f.Param("offsets")
		pointers := make([]X, taps)
		for i := range pointers {
			pointers[i] = indexed(f, offsets, from)
		}
		line, blocks := f.Param("line"), f.Param("blocks")
		t := newTile(f, taps)
		loop := fmt.Sprintf("block_%d", taps)
		f.Label(loop)
		for h := range 2 {
			pixels := t.loadPair(place{line, h * vector * bytes})
			for i, row := range t.rows {
				for n, v := range t.loadPair(place{pointers[i], h * vector * bytes}) {
					f.Arm("fmla v%d.4s, v%d.4s, v%d.4s", row[2*h+n], v, pixels[n])
				}
			}
		}
		for _, p := range append(pointers, line) {
			f.Go("ADD $%d, R%d", tapBlock*bytes, p)
		}
		f.Go("SUBS $1, R%d", blocks)
		f.Go("BNE %s", loop)
		sums, add := f.Param("sums"), f.Param("add")
		for i, row := range t.rows {
			var halves [2]V
			for n := range halves {
				halves[n] = f.Of("fadd v%d.4s, v%d.4s, v%d.4s", row[n], row[n+2])
			}
			total := horizontal(f, halves)
			after := fmt.Sprintf("added_%d_%d", taps, i)
			f.Go("TBZ $0, R%d, %s", add, after)
			was := f.Vector()
			f.Arm("ldr s%d, [x%d]", was, sums)
			f.Arm("fadd s%d, s%d, s%d", total, was, total)
			f.Label(after)
			f.Arm("str s%d, [x%d], #%d", total, sums, bytes)
		}
	})
}

// unzipLines writes the copy of the even and the odd elements of lines to lines of their own. If a
// line is not a multiple of four pairs, its last four overlap those before them.
func unzipLines(file *File) {
	f := file.Function("unzipLines", "func(even, odd *float32, toLine int, from *float32, fromLine, lines, width int)",
		"separates the even and odd elements of lines of width pairs, at least four. Lines are toLine and fromLine elements apart.")
	even, odd, from, lines := f.Param("even"), f.Param("odd"), f.Param("from"), f.Param("lines")
	toLine, fromLine, width := f.Bytes("toLine"), f.Bytes("fromLine"), f.Param("width")
	f.Label("line")
	at, left := f.General(), f.General()
	f.Go("MOVD $0, R%d", at) // pairs that are done
	f.Label("four")
	source, first, second := f.General(), f.General(), f.General()
	f.Go("ADD R%d<<3, R%d, R%d", at, from, source)
	f.Go("ADD R%d<<2, R%d, R%d", at, even, first)
	f.Go("ADD R%d<<2, R%d, R%d", at, odd, second)
	pair := tile{Function: f}.loadPair(place{source, 0})
	f.Arm("str q%d, [x%d]", f.Of("uzp1 v%d.4s, v%d.4s, v%d.4s", pair[0], pair[1]), first)
	f.Arm("str q%d, [x%d]", f.Of("uzp2 v%d.4s, v%d.4s, v%d.4s", pair[0], pair[1]), second)
	f.Go("ADD $%d, R%d", lanes, at)
	f.Go("SUBS R%d, R%d, R%d", at, width, left)
	f.Go("BEQ %s", "next")
	f.Go("CMP $%d, R%d", lanes, left)
	f.Go("BGE %s", "four")
	f.Go("SUB $%d, R%d, R%d", lanes, width, at)
	f.Go("B %s", "four")
	f.Label("next")
	f.Go("ADD R%d, R%d", toLine, even)
	f.Go("ADD R%d, R%d", toLine, odd)
	f.Go("ADD R%d, R%d", fromLine, from)
	f.Go("SUBS $1, R%d", lines)
	f.Go("BNE %s", "line")
	f.Go("RET")
}
