package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestWide(t *testing.T) {
	var want []float64
	onEachInstructionSet(t, func(t *testing.T) {
		got := append(checkWide[float32](t, 0x1p-24), checkWide[float64](t, 0x1p-53)...)
		if isa == portableGo {
			want = got
		}
		for i, v := range got {
			if v != want[i] {
				t.Fatalf("result %d is %g, in portable Go %g", i, v, want[i])
			}
		}
	})
}

// checkWide returns all results, for planes of several sizes whose coefficients differ. Rounding to
// T is relative to the element; sums are not rounded.
func checkWide[T Float](t *testing.T, rounding float64) []float64 {
	t.Helper()
	var results []float64
	for _, size := range [][2]int{{1, 1}, {3, 15}, {PlanesTogether, 16}, {2, 31}, {1, 33}, {4, 257}, {5, 64}, {2, 1000}} {
		planes, n := size[0], size[1]
		r := rand.New(rand.NewPCG(uint64(n), 6))
		x, y := normals[T](r, planes*n), normals[T](r, planes*n)
		means, affines, combinations := make([]float64, planes), make([]Affine, planes), make([]Combination, planes)
		bounds, sums := make([]T, planes), make([][4]sum, planes)
		for plane := range planes {
			mean := .3 - float64(plane)
			means[plane], bounds[plane] = mean, T(mean)
			affines[plane], combinations[plane] = Affine{mean, 1.25, .1 + mean}, Combination{mean, -.75, 1.25 + mean, .1}
			for i := plane * n; i < (plane+1)*n; i++ {
				u, v := float64(x[i]), float64(y[i])
				for k, term := range []float64{u, u - v, (u - mean) * (u - mean), v * (u - mean)} {
					sums[plane][k].add(term)
				}
			}
		}
		for k, of := range []func(totals []float64){
			func(totals []float64) { WideSumPlanes(totals, x) }, func(totals []float64) { WideDifferencePlanes(totals, x, y) },
			func(totals []float64) { WideSquaresPlanes(totals, x, means) }, func(totals []float64) { WideProductsPlanes(totals, y, x, means) },
		} {
			totals := make([]float64, planes)
			of(totals)
			for plane, total := range totals {
				compare(t, []float64{total}, sums[plane][k:k+1])
			}
			results = append(results, totals...)
		}
		for k, of := range []func(to []T){
			func(to []T) { WideAffinePlanes(to, x, affines) }, func(to []T) { WideCombinePlanes(to, y, x, combinations) },
			func(to []T) { RaisePlanes(to, x, bounds) }, func(to []T) { PassAbovePlanes(to, y, x, bounds) },
			func(to []T) { MultiplyPlanes(to, x, bounds) }, func(to []T) { AddPlanes(to, x, bounds) },
		} {
			all, to := guarded[T](planes * n)
			of(to)
			if !intact(all) {
				t.Errorf("%d planes of %d, function %d: written out of bounds", planes, n, k)
			}
			for i, got := range to {
				u, v, bound := float64(x[i]), float64(y[i]), float64(bounds[i/n])
				a, c := affines[i/n], combinations[i/n]
				above := 0.0
				if u > bound {
					above = v
				}
				want := []float64{(u-a.Mean)*a.Scale + a.Shift, c.A*v - ((u-c.Mean)*c.B + c.C), max(u, bound), above, u * bound, u + bound}[k]
				terms := math.Abs(u) + math.Abs(bound) + math.Abs(a.Shift) + math.Abs(c.A*v)
				if !(math.Abs(float64(got)-want) <= rounding*math.Abs(want)+0x1p-50*terms) {
					t.Fatalf("function %d, element %d of %d planes of %d: got %g, want %g", k, i, planes, n, got, want)
				}
				results = append(results, float64(got))
			}
		}
		all, to := guarded[T](planes * n)
		shift := normals[T](r, planes*n)
		WideAffineRow(to, x, y, shift, means[0], 1.25)
		if !intact(all) {
			t.Errorf("%d elements of a row: written out of bounds", planes*n)
		}
		for i, got := range to {
			product, last := (float64(x[i])-means[0])*(float64(y[i])*1.25), float64(shift[i])
			if want := product + last; !(math.Abs(float64(got)-want) <= rounding*math.Abs(want)+0x1p-50*(math.Abs(product)+math.Abs(last))) {
				t.Fatalf("element %d of a row of %d: got %g, want %g", i, planes*n, got, want)
			}
			results = append(results, float64(got))
		}
	}
	return results
}
