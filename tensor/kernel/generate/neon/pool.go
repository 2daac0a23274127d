package main

import . "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"

// planes writes a loop over planes and, in each, over segments of four outputs, in pairs whose places in x and y the parameter table holds: both
// inputs, then both outputs. The parameters x and y name the sides; body gets their addresses at a segment.
func planes(f *Function, x, y []string, body func(inputs, outputs []X)) {
	var sides [2][]X
	for side, names := range [][]string{x, y} {
		for _, name := range names {
			sides[side] = append(sides[side], f.Param(name))
		}
	}
	planes := f.Param("planes")
	f.Label("plane")
	table, pairs := f.Param("table"), f.Param("pairs")
	f.Label("pair")
	for h := range 2 {
		var at [2][]X
		for side, pointers := range sides {
			place := f.General()
			f.Go("MOVW %d(R%d), R%d", (2*side+h)*bytes, table, place)
			for _, pointer := range pointers {
				address := f.General()
				f.Go("ADD R%d<<2, R%d, R%d", place, pointer, address)
				at[side] = append(at[side], address)
			}
		}
		body(at[0], at[1])
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
	f.Go("SUBS $1, R%d", planes)
	f.Go("BNE %s", "plane")
	f.Go("RET")
}

func maximum(f *Function, a, b V) V { return f.Of("fmax v%d.4s, v%d.4s, v%d.4s", a, b) }

// evenOdd parts eight elements by place.
func evenOdd(f *Function, pair [2]V) (even, odd V) {
	return f.Of("uzp1 v%d.4s, v%d.4s, v%d.4s", pair[0], pair[1]), f.Of("uzp2 v%d.4s, v%d.4s, v%d.4s", pair[0], pair[1])
}

// maxPlanes writes the forward pass of 2 x 2 maximum pooling. The lines of x below upper are the parameter lower.
func maxPlanes(file *File) {
	f := file.Function("maxPlanes", "func(upper, lower, y *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)",
		"is the maxima of planes by a table of segments.")
	floor := f.Lanes("floor")
	t := tile{Function: f}
	planes(f, []string{"upper", "lower"}, []string{"y"}, func(x, y []X) {
		upper, lower := t.loadPair(place{x[0], 0}), t.loadPair(place{x[1], 0})
		even, odd := evenOdd(f, [2]V{maximum(f, upper[0], lower[0]), maximum(f, upper[1], lower[1])})
		f.Arm("str q%d, [x%d]", maximum(f, maximum(f, even, odd), floor), y[0])
	})
}

// maxPlanesBackward writes the backward pass of 2 x 2 maximum pooling.
func maxPlanesBackward(file *File) {
	f := file.Function("maxPlanesBackward",
		"func(upper, lower, dupper, dlower, gradient *float32, table *int32, pairs, planes, xPlane, yPlane int, floor float32)",
		"is the gradient of maxPlanes.")
	t := tile{Function: f}
	floor := f.Lanes("floor")
	greater := func(a, b V) V { return f.Of("fcmgt v%d.4s, v%d.4s, v%d.4s", a, b) }
	and := func(a, b V) V { return f.Of("and v%d.16b, v%d.16b, v%d.16b", a, b) }
	without := func(a, b V) V { return f.Of("bic v%d.16b, v%d.16b, v%d.16b", a, b) }
	numbered := f.Of("fcmeq v%d.4s, v%d.4s, v%d.4s", floor, floor) // none where floor is NaN
	planes(f, []string{"upper", "lower", "dupper", "dlower"}, []string{"gradient"}, func(x, y []X) {
		// row returns the greater of each two neighbours and whether it is the second.
		row := func(line X) (best, second V) {
			even, odd := evenOdd(f, t.loadPair(place{line, 0}))
			return maximum(f, even, odd), greater(odd, even)
		}
		upperBest, upperSecond := row(x[0])
		lowerBest, lowerSecond := row(x[1])
		below := greater(lowerBest, upperBest)
		passes := f.Of("orn v%d.16b, v%d.16b, v%d.16b", greater(maximum(f, upperBest, lowerBest), floor), numbered)
		g := and(f.Of("ldr q%d, [x%d]", y[0]), passes)
		store := func(line X, part, second V) {
			even, odd := without(part, second), and(part, second)
			t.storePair(f.Of("zip1 v%d.4s, v%d.4s, v%d.4s", even, odd), f.Of("zip2 v%d.4s, v%d.4s, v%d.4s", even, odd), place{line, 0})
		}
		store(x[2], without(g, below), upperSecond)
		store(x[3], and(g, below), lowerSecond)
	})
}
