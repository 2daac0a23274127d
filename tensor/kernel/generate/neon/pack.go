package main

import . "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"

// transpose writes the packing of eight columns of a panel, four of the depth at a time.
func transpose(file *File) {
	f := file.Function("transpose", "func(panel *float32, distance int, source *float32, offsets *[8]int, depth int)",
		"is packColumns for eight columns, which begin at offsets, rows that lie distance elements apart "+
			"and are written in order, and a depth that is a multiple of eight and not 0.")
	panel, distance := f.Param("panel"), f.Param("distance")
	source, offsets := f.Param("source"), f.Param("offsets")
	var columns [vector]X
	for j := range columns {
		columns[j] = f.General()
		f.Go("MOVD %d(R%d), R%d", 8*j, offsets, columns[j])
		f.Go("ADD R%d<<2, R%d, R%d", columns[j], source, columns[j])
	}
	depth := f.Param("depth")
	f.Label("loop")
	var halves [2][4]V
	for half := range halves {
		var rows [4]V
		for j := range rows {
			rows[j] = f.Vector()
			f.Arm("ldr q%d, [x%d], #%d", rows[j], columns[4*half+j], lanes*bytes)
		}
		halves[half] = f.Transposed(rows)
	}
	for k := range lanes {
		f.Arm("stp q%d, q%d, [x%d]", halves[0][k], halves[1][k], panel)
		f.Go("ADD R%d<<2, R%d, R%d", distance, panel, panel)
	}
	f.Go("SUBS $%d, R%d", lanes, depth)
	f.Go("BNE %s", "loop")
	f.Go("RET")
}

// windowRuns writes the packing of a panel of patches in which each half is two runs: both are
// loaded and selected lane by lane.
func windowRuns(file *File) {
	f := file.Function("windowRuns", "func(panel, padded *float32, halves *[6]int32, taps *int32, depth int)",
		"is packWindow for a panel of runs.")
	panel, padded, halves := f.Param("panel"), f.Param("padded"), f.Param("halves")
	numbers := [2]V{f.LaneNumbers(), f.Vector()}
	f.Arm("movi v%d.4s, #%d", numbers[1], lanes)
	f.Arm("add v%d.4s, v%d.4s, v%d.4s", numbers[1], numbers[1], numbers[0])
	var runs [2][2]X
	var first [2][2]V // all ones in the lanes of the first run
	for h := range runs {
		runs[h] = [2]X{indexed(f, halves, padded), indexed(f, halves, padded)}
		split := f.Vector()
		f.Arm("ld1r {v%d.4s}, [x%d], #%d", split, halves, bytes)
		for part := range first[h] {
			first[h][part] = f.Vector()
			f.Arm("cmgt v%d.4s, v%d.4s, v%d.4s", first[h][part], split, numbers[part])
		}
	}
	taps, depth := f.Param("taps"), f.Param("depth")
	f.Label("loop")
	tap := next(f, taps)
	t := tile{Function: f}
	for h := range runs {
		var pairs [2][2]V
		for i, run := range runs[h] {
			at := f.General()
			f.Go("ADD R%d<<2, R%d, R%d", tap, run, at)
			pairs[i] = t.loadPair(place{at, 0})
		}
		for part, v := range pairs[1] {
			f.Arm("bit v%d.16b, v%d.16b, v%d.16b", v, pairs[0][part], first[h][part])
		}
		t.storePair(pairs[1][0], pairs[1][1], place{panel, h * vector * bytes})
	}
	f.Go("ADD $%d, R%d", panelColumns*bytes, panel)
	f.Go("SUBS $1, R%d", depth)
	f.Go("BNE %s", "loop")
	f.Go("RET")
}

// windowGather writes the packing of any panel of patches, one element after another.
func windowGather(file *File) {
	f := file.Function("windowGather", "func(panel, padded *float32, pixels *[16]int32, taps *int32, depth int)",
		"is packWindow for any panel.")
	panel, padded, table := f.Param("panel"), f.Param("padded"), f.Param("pixels")
	pixels := make([]X, panelColumns)
	for j := range pixels {
		pixels[j] = next(f, table)
	}
	taps, depth := f.Param("taps"), f.Param("depth")
	f.Label("loop")
	from := indexed(f, taps, padded)
	for j, pixel := range pixels {
		v := f.General()
		f.Go("MOVWU (R%d)(R%d<<2), R%d", from, pixel, v)
		f.Go("MOVW R%d, %d(R%d)", v, j*bytes, panel)
	}
	f.Go("ADD $%d, R%d", panelColumns*bytes, panel)
	f.Go("SUBS $1, R%d", depth)
	f.Go("BNE %s", "loop")
	f.Go("RET")
}
