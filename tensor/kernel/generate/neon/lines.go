package main

import . "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"

// lineTaps is the number of filter columns that accumulateLines supports.
const lineTaps = 5

// accumulateLines writes the sums of products of two channels' lines with lines of x shifted by
// each tap. Eight pixels of a channel are two vectors.
func accumulateLines(file *File) {
	f := file.Function("multiplyLines",
		"func(dout *float32, second, image int, x *float32, offsets *int32, count, images, rows, line, xRow, xImage int, first, other *float32, add bool)",
		"is accumulateLines.")
	offsets, count, second := f.Param("offsets"), f.Param("count"), f.Bytes("second")
	results := [2]X{f.Param("first"), f.Param("other")}
	f.Label("offset")
	x := indexed(f, offsets, f.Param("x"))
	var sums [2][lineTaps][2]V
	for half := range sums {
		for tap := range lineTaps {
			sums[half][tap] = [2]V{f.Zero(), f.Zero()}
		}
	}
	dout, images := f.Param("dout"), f.Param("images")
	f.Label("image")
	rows, at, row := f.Param("rows"), f.General(), f.General()
	f.Go("MOVD R%d, R%d", dout, at)
	f.Go("MOVD R%d, R%d", x, row)
	f.Label("row")
	line, from := f.Param("line"), f.General()
	f.Go("MOVD R%d, R%d", row, from)
	f.Label("vector")
	t := tile{Function: f}
	other := f.General()
	f.Go("ADD R%d, R%d, R%d", second, at, other)
	pixels := [2][2]V{t.loadPair(place{at, 0}), t.loadPair(place{other, 0})}
	for tap := range lineTaps {
		for part := range 2 {
			v := f.Vector()
			f.Arm("ldur q%d, [x%d, #%d]", v, from, (tap+part*lanes)*bytes)
			for half := range sums {
				f.Arm("fmla v%d.4s, v%d.4s, v%d.4s", sums[half][tap][part], v, pixels[half][part])
			}
		}
	}
	f.Go("ADD $%d, R%d", vector*bytes, at)
	f.Go("ADD $%d, R%d", vector*bytes, from)
	f.Go("SUBS $%d, R%d", vector, line)
	f.Go("BNE %s", "vector")
	f.Go("ADD R%d, R%d", f.Bytes("xRow"), row)
	f.Go("SUBS $1, R%d", rows)
	f.Go("BNE %s", "row")
	f.Go("ADD R%d, R%d", f.Bytes("xImage"), x)
	f.Go("ADD R%d, R%d", f.Bytes("image"), dout)
	f.Go("SUBS $1, R%d", images)
	f.Go("BNE %s", "image")

	add := f.Param("add")
	for half, to := range results {
		for tap, parts := range sums[half] {
			v := horizontal(f, parts)
			after := []string{"first", "other"}[half] + string(rune('0'+tap))
			f.Go("TBZ $0, R%d, %s", add, after)
			was := f.Vector()
			f.Arm("ldr s%d, [x%d]", was, to)
			f.Arm("fadd s%d, s%d, s%d", v, was, v)
			f.Label(after)
			f.Arm("str s%d, [x%d], #%d", v, to, bytes)
		}
	}
	f.Go("SUBS $1, R%d", count)
	f.Go("BNE %s", "offset")
	f.Go("RET")
}

// horizontal returns the sum of eight numbers: it adds those at a distance of 4, then of 2, then of
// 1.
func horizontal(f *Function, parts [2]V) V {
	v, high := f.Vector(), f.Vector()
	f.Arm("fadd v%d.4s, v%d.4s, v%d.4s", v, parts[0], parts[1])
	f.Arm("ext v%d.16b, v%d.16b, v%d.16b, #8", high, v, v)
	f.Arm("fadd v%d.2s, v%d.2s, v%d.2s", v, v, high)
	f.Arm("faddp s%d, v%d.2s", v, v)
	return v
}
