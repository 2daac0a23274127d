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
		if inUse == portableGo {
			want = got
		}
		for i, v := range got {
			if v != want[i] {
				t.Fatalf("result %d is %g, in portable Go %g", i, v, want[i])
			}
		}
	})
}

// checkWide returns all results. Rounding to T is relative to the element; what is added up is not
// rounded.
func checkWide[T Float](t *testing.T, rounding float64) []float64 {
	t.Helper()
	var results []float64
	const mean, a, b, c = 0.3, 1.25, -0.75, 0.1
	for _, n := range []int{1, 15, 16, 31, 33, 257, 1000} {
		r := rand.New(rand.NewPCG(uint64(n), 6))
		x, y := normals[T](r, n), normals[T](r, n)
		var sums [4]sum
		for i := range x {
			u, v := float64(x[i]), float64(y[i])
			sums[0].add(u)
			sums[1].add(u - v)
			sums[2].add((u - mean) * (u - mean))
			sums[3].add(v * (u - mean))
		}
		totals := []float64{WideSum(x), WideDifference(x, y), WideSquares(x, mean), WideProducts(y, x, mean)}
		compare(t, totals, sums[:])
		results = append(results, totals...)

		allAffine, affine := guarded[T](n)
		allCombined, combined := guarded[T](n)
		WideAffine(affine, x, mean, a, b)
		WideCombine(combined, y, x, mean, a, b, c)
		if !intact(allAffine) || !intact(allCombined) {
			t.Errorf("%d elements: written out of bounds", n)
		}
		for i := range x {
			u, v := float64(x[i]), float64(y[i])
			for _, pair := range [][2]float64{{float64(affine[i]), (u-mean)*a + b}, {float64(combined[i]), a*v - ((u-mean)*b + c)}} {
				if !(math.Abs(pair[0]-pair[1]) <= rounding*math.Abs(pair[1])+0x1p-50) {
					t.Fatalf("element %d of %d: got %g, want %g", i, n, pair[0], pair[1])
				}
			}
			results = append(results, float64(affine[i]), float64(combined[i]))
		}
	}
	return results
}
