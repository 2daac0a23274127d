package main

import . "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"

// sumRows writes the addition of rows, passLanes columns at a time.
func sumRows(file *File) {
	f := file.Function("sumRows", "func(y, x *float32, columns, rows, stride int)",
		"is SumRows for a number of columns that is a multiple of 16 and not 0, and at least one row.")
	y, x, columns, stride := f.Param("y"), f.Param("x"), f.Param("columns"), f.Bytes("stride")
	f.Label("columns")
	t := newTile(f, 1)
	at, rows := f.General(), f.Param("rows")
	f.Go("MOVD R%d, R%d", x, at)
	f.Label("rows")
	for h, half := range (place{at, 0}).row() {
		t.addHalf(t.rows[0], h, half)
	}
	f.Go("ADD R%d, R%d", stride, at)
	f.Go("SUBS $1, R%d", rows)
	f.Go("BNE %s", "rows")
	for h, half := range (place{y, 0}).row() {
		t.storePair(t.rows[0][2*h], t.rows[0][2*h+1], half)
	}
	f.Go("ADD $%d, R%d", passLanes*bytes, x)
	f.Go("ADD $%d, R%d", passLanes*bytes, y)
	f.Go("SUBS $%d, R%d", passLanes, columns)
	f.Go("BNE %s", "columns")
	f.Go("RET")
}

// scaleBytes writes the conversion of bytes.
func scaleBytes(file *File) {
	f := file.Function("scaleBytes", "func(y *float32, x *uint8, n int, scale, shift float32)",
		"is ScaleBytes for a number of elements that is a multiple of 16 and not 0.")
	y, x, n, scale, shift := f.Param("y"), f.Param("x"), f.Param("n"), f.Lanes("scale"), f.Lanes("shift")
	f.Label("loop")
	all := f.Vector()
	f.Arm("ldr q%d, [x%d], #%d", all, x, passLanes)
	for _, half := range []string{"ushll v%d.8h, v%d.8b, #0", "ushll2 v%d.8h, v%d.16b, #0"} {
		eight := f.Vector()
		f.Arm(half, eight, all)
		for _, quarter := range []string{"ushll v%d.4s, v%d.4h, #0", "ushll2 v%d.4s, v%d.8h, #0"} {
			v := f.Vector()
			f.Arm(quarter, v, eight)
			f.Arm("ucvtf v%d.4s, v%d.4s", v, v)
			f.Arm("fmul v%d.4s, v%d.4s, v%d.4s", v, v, scale)
			f.Arm("fadd v%d.4s, v%d.4s, v%d.4s", v, v, shift)
			f.Arm("str q%d, [x%d], #%d", v, y, lanes*bytes)
		}
	}
	f.Go("SUBS $%d, R%d", passLanes, n)
	f.Go("BNE %s", "loop")
	f.Go("RET")
}

// peakChains is the number of independent chains of multiply-adds. It is larger than any
// processor's latency, in cycles, times the number of multiply-adds that it starts per cycle.
const peakChains = 24

// multiplyAdds writes a loop that consists only of fused multiply-adds.
func multiplyAdds(file *File) {
	f := file.Function("multiplyAdds", "func(loops int)", "makes 24 fused multiply-adds in each loop.")
	loops, factor := f.Param("loops"), f.Zero()
	var sums [peakChains]V
	for i := range sums {
		sums[i] = f.Zero()
	}
	f.Label("loop")
	for _, sum := range sums {
		f.Arm("fmla v%d.4s, v%d.4s, v%d.4s", sum, factor, factor)
	}
	f.Go("SUBS $1, R%d", loops)
	f.Go("BNE %s", "loop")
	f.Go("RET")
}
