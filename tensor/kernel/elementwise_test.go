package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// sameBits compares numbers by their bits; all NaN are the same.
func sameBits[T Float](a, b T) bool {
	return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) || a != a && b != b
}

// activations returns normals, including zeros of both signs, infinities and NaN.
func activations[T Float](r *rand.Rand, n int) (all, x []T) {
	all, x = guarded[T](n)
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 0.5}
	for i := range x {
		x[i] = T(r.NormFloat64())
		if i%7 == 3 {
			x[i] = T(special[i/7%len(special)])
		}
	}
	return all, x
}

func TestElementwise(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		checkElementwise[float32](t)
		checkElementwise[float64](t)
	})
}

func checkElementwise[T Float](t *testing.T) {
	t.Helper()
	for _, n := range []int{0, 1, 15, 16, 31, 33, 257} {
		r := rand.New(rand.NewPCG(uint64(n), 3))
		_, a := activations[T](r, n)
		_, b := activations[T](r, n)
		for name, c := range map[string]struct {
			run  func(y []T)
			want func(a, b T) T
		}{
			"add":      {func(y []T) { Add(y, a, b) }, func(a, b T) T { return a + b }},
			"subtract": {func(y []T) { Subtract(y, a, b) }, func(a, b T) T { return a - b }},
			"multiply": {func(y []T) { Multiply(y, a, b) }, func(a, b T) T { return a * b }},
			"divide":   {func(y []T) { Divide(y, a, b) }, func(a, b T) T { return a / b }},
			"keep": {func(y []T) { Keep(y, a, single(b), 0.5, 3) }, func(a, b T) T {
				if b > 0.5 {
					return 3 * a
				}
				return 0
			}},
			"raise":      {func(y []T) { Raise(y, a, 0.5) }, func(a, _ T) T { return max(a, 0.5) }},
			"raise to 0": {func(y []T) { Raise(y, a, 0) }, func(a, _ T) T { return max(a, 0) + 0 }},
			"clip":       {func(y []T) { Clip(y, a, -0.5, 0.5) }, func(a, _ T) T { return min(max(a, -0.5), 0.5) + 0 }},
			"clip to 6":  {func(y []T) { Clip(y, a, 0, 6) }, func(a, _ T) T { return min(max(a, 0), 6) + 0 }},
			"pass within": {func(y []T) { PassWithin(y, a, b, -0.5, 0.5) }, func(a, b T) T {
				if -0.5 < b && b < 0.5 {
					return a
				}
				return 0
			}},
			"pass above": {func(y []T) { PassAbove(y, a, b, 0.5) }, func(a, b T) T {
				if b > 0.5 {
					return a
				}
				return 0
			}},
		} {
			all, y := guarded[T](n)
			poison(y)
			c.run(y)
			if !intact(all) {
				t.Errorf("%s of %d elements: written out of bounds", name, n)
			}
			for i := range y {
				if want := c.want(a[i], b[i]); !sameBits(y[i], want) {
					t.Errorf("%s of %d elements: element %d of %g and %g is %g, want %g", name, n, i, a[i], b[i], y[i], want)
				}
			}
		}
	}
}

// single returns x as float32.
func single[T Float](x []T) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

func TestSums(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		checkSums[float32](t)
		checkSums[float64](t)
	})
}

func checkSums[T Float](t *testing.T) {
	t.Helper()
	for _, n := range []int{1, 15, 16, 31, 33, 257, 10000} {
		x := normals[T](rand.New(rand.NewPCG(uint64(n), 4)), n)
		want := sum{}
		for _, v := range x {
			want.add(float64(v))
		}
		var total [1]float64
		SumPlanes(total[:], x)
		compare(t, []T{T(total[0])}, []sum{want})
	}
	for _, size := range [][3]int{{1, 1, 1}, {100, 10, 10}, {33, 257, 260}, {3, 31, 40}, {0, 17, 17}} {
		rows, columns, stride := size[0], size[1], size[2]
		x := normals[T](rand.New(rand.NewPCG(uint64(columns), 5)), rows*stride)
		want := make([]sum, columns)
		for r := range rows {
			for i := range want {
				want[i].add(float64(x[r*stride+i]))
			}
		}
		all, y := guarded[T](columns)
		poison(y)
		SumRows(y, x, rows, stride)
		compare(t, y, want)
		if !intact(all) {
			t.Errorf("%d rows of %d: written out of bounds", rows, columns)
		}
	}
}

func TestScaleBytes(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, n := range []int{1, 16, 31, 300} {
			x := make([]uint8, n)
			for i := range x {
				x[i] = uint8(255 - i)
			}
			all, y := guarded[float32](n)
			const scale, shift = float32(1.0 / 77), float32(-0.4)
			ScaleBytes(y, x, scale, shift)
			for i, v := range x {
				if want := float32(float32(v)*scale) + shift; y[i] != want {
					t.Errorf("%d elements: element %d of %d is %g, want %g", n, i, v, y[i], want)
				}
			}
			if !intact(all) {
				t.Errorf("%d elements: written out of bounds", n)
			}
		}
	})
}
