package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestWindows2x2: the indices point to the first maxima, the gradient is added there, and all
// instruction sets agree.
func TestWindows2x2(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, size := range [][2]int{{2, 2}, {4, 6}, {6, 8}, {2, 10}, {14, 14}, {28, 28}, {12, 34}} {
			for _, planes := range []int{0, 1, 3} {
				t.Run(fmt.Sprint(planes, " of ", size), func(t *testing.T) {
					checkQuads[float32](t, size[0], size[1], planes)
					checkQuads[float64](t, size[0], size[1], planes)
				})
			}
		}
	})
}

func checkQuads[T Float](t *testing.T, height, width, planes int) {
	t.Helper()
	r := newRandom()
	area := height * width
	x, dout := make([]T, planes*area), make([]T, planes*area/4)
	for i := range x {
		x[i] = T(r.IntN(7) - 4) // ties
	}
	for i := range dout {
		dout[i] = T(r.NormFloat64())
	}
	want, gradients := make([]uint8, len(dout)), [2][]T{make([]T, len(x)), make([]T, len(x))}
	eachWindow(Pool2D{B: 1, C: planes, H: height, W: width, R: 2, S: 2, StrideH: 2, StrideW: 2}, func(y int, xs []int) {
		at := firstMaximum(x, xs)
		want[y] = uint8(slices.Index(xs, at))
		gradients[0][at] = dout[y]
		if x[at] > 0 {
			gradients[1][at] = dout[y]
		} else {
			want[y] += 4
		}
	})
	q := NewWindows2x2(height, width)
	places := make([]uint8, len(dout))
	MaxIndices(q, places, x)
	if !slices.Equal(places, want) {
		t.Fatalf("places are %v, want %v", places, want)
	}
	for i, positive := range []bool{false, true} {
		all, dx := guarded[T](len(x))
		for j := range dx {
			dx[j] = T(math.NaN())
		}
		UnpoolGrad(q, dx, dout, places, positive)
		if !slices.Equal(dx, gradients[i]) || !intact(all) {
			t.Fatalf("of positive ones only %v: the gradient is %v, want %v", positive, dx, gradients[i])
		}
	}
}

// TestWindows2x2OfNaN: a NaN does not cause writes outside the window.
func TestWindows2x2OfNaN(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		x := slices.Repeat([]float32{float32(math.NaN()), 1, -1, 2, float32(math.NaN())}, 8*8/4)[:64]
		q, places, dx := NewWindows2x2(8, 8), make([]uint8, 16), make([]float32, 64)
		MaxIndices(q, places, x)
		UnpoolGrad(q, dx, slices.Repeat([]float32{1}, 16), places, false)
		for i, at := range places {
			if at >= 8 {
				t.Errorf("place %d is %d", i, at)
			}
		}
		sum := float32(0)
		for _, v := range dx {
			sum += v
		}
		if sum != 16 {
			t.Errorf("gradients of 1 add up to %g, want 16", sum)
		}
	})
}
