package main

import . "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"

// planes writes a loop over planes and, within each, over segments of four outputs, in pairs whose
// offsets in x and y are in the parameter table: both inputs, then both outputs. x and y name the
// parameters that point to inputs and outputs; notes, if not empty, names one that points to
// outputs of a byte each. body gets the addresses at a segment.
func planes(f *Function, x, y []string, notes string, body func(inputs, outputs []X, notes X)) {
	var sides [2][]X
	for side, names := range [][]string{x, y} {
		for _, name := range names {
			sides[side] = append(sides[side], f.Param(name))
		}
	}
	var noted X
	if notes != "" {
		noted = f.Param(notes)
	}
	planes := f.Param("planes")
	f.Label("plane")
	table, pairs := f.Param("table"), f.Param("pairs")
	f.Label("pair")
	for h := range 2 {
		var at [2][]X
		var note X
		for side, pointers := range sides {
			place := f.General()
			f.Go("MOVW %d(R%d), R%d", (2*side+h)*bytes, table, place)
			for _, pointer := range pointers {
				address := f.General()
				f.Go("ADD R%d<<2, R%d, R%d", place, pointer, address)
				at[side] = append(at[side], address)
			}
			if side == 1 && notes != "" {
				note = f.General()
				f.Go("ADD R%d, R%d, R%d", place, noted, note)
			}
		}
		body(at[0], at[1], note)
	}
	f.Go("ADD $%d, R%d", 4*bytes, table)
	f.Go("SUBS $1, R%d", pairs)
	f.Go("BNE %s", "pair")
	for side, pointers := range sides {
		step := f.Bytes([]string{"xPlane", "yPlane"}[side])
		for _, pointer := range pointers {
			f.Go("ADD R%d, R%d", step, pointer)
		}
	}
	if notes != "" {
		f.Go("ADD R%d, R%d", f.Param("yPlane"), noted)
	}
	f.Go("SUBS $1, R%d", planes)
	f.Go("BNE %s", "plane")
	f.Go("RET")
}

func maximum(f *Function, a, b V) V { return f.Of("fmax v%d.4s, v%d.4s, v%d.4s", a, b) }

// evenOdd separates eight elements into even and odd ones.
func evenOdd(f *Function, pair [2]V) (even, odd V) {
	return f.Of("uzp1 v%d.4s, v%d.4s, v%d.4s", pair[0], pair[1]), f.Of("uzp2 v%d.4s, v%d.4s, v%d.4s", pair[0], pair[1])
}

// maxPlanes writes the forward pass of 2 x 2 max pooling. upper and lower point to the upper and
// lower lines of the windows.
func maxPlanes(file *File) {
	f := file.Function("maxPlanes", "func(upper, lower, y *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)",
		"is the maxima of planes by a table of segments.")
	floor := f.Lanes("floor")
	t := tile{Function: f}
	planes(f, []string{"upper", "lower"}, []string{"y"}, "", func(x, y []X, _ X) {
		upper, lower := t.loadPair(place{x[0], 0}), t.loadPair(place{x[1], 0})
		even, odd := evenOdd(f, [2]V{maximum(f, upper[0], lower[0]), maximum(f, upper[1], lower[1])})
		f.Arm("str q%d, [x%d]", maximum(f, maximum(f, even, odd), floor), y[0])
	})
}

func greater(f *Function, a, b V) V { return f.Of("fcmgt v%d.4s, v%d.4s, v%d.4s", a, b) }
func and(f *Function, a, b V) V     { return f.Of("and v%d.16b, v%d.16b, v%d.16b", a, b) }

// number returns a vector with an integer in all lanes.
func number(f *Function, value int) V { return f.Of("movi v%d.4s, #%d", value) }

// notePlaces writes the index of the first maximum of each 2 x 2 window (MaxIndices).
func notePlaces(file *File) {
	f := file.Function("notePlaces", "func(upper, lower *float32, places *uint8, table *int32, pairs, planes, xPlane, yPlane int)",
		"notes the first maxima of windows by a table of segments.")
	t := tile{Function: f}
	one, two, four, zero := number(f, 1), number(f, 2), number(f, 4), f.Zero()
	or := func(a, b V) V { return f.Of("orr v%d.16b, v%d.16b, v%d.16b", a, b) }
	planes(f, []string{"upper", "lower"}, nil, "places", func(x, _ []X, places X) {
		row := func(line X) (best, second V) {
			even, odd := evenOdd(f, t.loadPair(place{line, 0}))
			return maximum(f, even, odd), greater(f, odd, even)
		}
		upper, upperSecond := row(x[0])
		lower, lowerSecond := row(x[1])
		below, above := greater(f, lower, upper), greater(f, maximum(f, upper, lower), zero)
		second := f.Of("mov v%d.16b, v%d.16b", below)
		f.Arm("bsl v%d.16b, v%d.16b, v%d.16b", second, lowerSecond, upperSecond)
		at := or(or(and(f, second, one), and(f, below, two)), f.Of("bic v%d.16b, v%d.16b, v%d.16b", four, above))
		f.Arm("str s%d, [x%d]", f.Of("xtn v%d.8b, v%d.8h", f.Of("xtn v%d.4h, v%d.4s", at)), places)
	})
}

// spreadPlaces writes the gradient of the maxima from their indices (UnpoolGrad). mask selects the
// bits of an index that count.
func spreadPlaces(file *File) {
	f := file.Function("spreadPlaces",
		"func(dupper, dlower, gradient *float32, places *uint8, table *int32, pairs, planes, xPlane, yPlane int, mask uint32)",
		"gives each window's gradient to the element that its place names.")
	t := tile{Function: f}
	mask := f.Lanes("mask")
	var of [4]V
	for i := range of {
		of[i] = number(f, i)
	}
	planes(f, []string{"dupper", "dlower"}, []string{"gradient"}, "places", func(x, y []X, places X) {
		g := f.Of("ldr q%d, [x%d]", y[0])
		at := f.Of("ushll v%d.4s, v%d.4h, #0", f.Of("ushll v%d.8h, v%d.8b, #0", f.Of("ldr s%d, [x%d]", places)))
		at = and(f, at, mask)
		for i, line := range x {
			var part [2]V
			for j := range part {
				part[j] = and(f, g, f.Of("cmeq v%d.4s, v%d.4s, v%d.4s", at, of[2*i+j]))
			}
			t.storePair(f.Of("zip1 v%d.4s, v%d.4s, v%d.4s", part[0], part[1]), f.Of("zip2 v%d.4s, v%d.4s, v%d.4s", part[0], part[1]), place{line, 0})
		}
	})
}
