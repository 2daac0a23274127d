package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// eachWindow calls visit with the position in y and the positions in x of every
// window.
func eachWindow(p Pool2D, visit func(y int, xs []int)) {
	for plane := range p.B * p.C {
		for i := range p.P() {
			for j := range p.Q() {
				var xs []int
				for r := range p.R {
					for s := range p.S {
						h, w := i*p.StrideH+r-p.PadH, j*p.StrideW+s-p.PadW
						if h >= 0 && h < p.H && w >= 0 && w < p.W {
							xs = append(xs, (plane*p.H+h)*p.W+w)
						}
					}
				}
				visit((plane*p.P()+i)*p.Q()+j, xs)
			}
		}
	}
}

func firstMaximum[T Float](x []T, xs []int) int {
	at := xs[0]
	for _, i := range xs {
		if x[i] > x[at] {
			at = i
		}
	}
	return at
}

func checkPool[T Float](t *testing.T, p Pool2D) {
	t.Helper()
	sizeX, sizeY := p.B*p.C*p.H*p.W, p.B*p.C*p.P()*p.Q()
	rectified := p
	rectified.ReLU = true
	for _, c := range []struct {
		plan  func() (Routine, error)
		naive func(in inputs[T]) []sum
	}{
		{p.MaxForward, func(in inputs[T]) []sum {
			out := make([]sum, sizeY)
			eachWindow(p, func(y int, xs []int) { out[y].value = float64(in.a[firstMaximum(in.a, xs)]) })
			return out
		}},
		{p.MaxBackward, func(in inputs[T]) []sum {
			out := make([]sum, sizeX)
			eachWindow(p, func(y int, xs []int) { out[firstMaximum(in.b, xs)].add(float64(in.a[y])) })
			return out
		}},
		{rectified.MaxForward, func(in inputs[T]) []sum {
			out := make([]sum, sizeY)
			eachWindow(p, func(y int, xs []int) { out[y].value = max(0, float64(in.a[firstMaximum(in.a, xs)])) })
			return out
		}},
		{rectified.MaxBackward, func(in inputs[T]) []sum {
			out := make([]sum, sizeX)
			eachWindow(p, func(y int, xs []int) {
				if at := firstMaximum(in.b, xs); in.b[at] > 0 {
					out[at].add(float64(in.a[y]))
				}
			})
			return out
		}},
		{p.AverageForward, func(in inputs[T]) []sum {
			out := make([]sum, sizeY)
			eachWindow(p, func(y int, xs []int) {
				for _, x := range xs {
					out[y].add(float64(in.a[x]) / float64(len(xs)))
				}
			})
			return out
		}},
		{p.AverageBackward, func(in inputs[T]) []sum {
			out := make([]sum, sizeX)
			eachWindow(p, func(y int, xs []int) {
				for _, x := range xs {
					out[x].add(float64(in.a[y]) / float64(len(xs)))
				}
			})
			return out
		}},
	} {
		plan, err := c.plan()
		if err != nil {
			t.Fatal(err)
		}
		check(t, plan, false, c.naive)
	}
}

func TestPool2D(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, p := range []Pool2D{
			{B: 1, C: 1, H: 1, W: 1, R: 1, S: 1, StrideH: 1, StrideW: 1},
			{B: 3, C: 31, H: 28, W: 28, R: 2, S: 2, StrideH: 2, StrideW: 2},
			{B: 2, C: 33, H: 14, W: 14, R: 2, S: 2, StrideH: 2, StrideW: 2},
			{B: 2, C: 3, H: 33, W: 31, R: 2, S: 2, StrideH: 2, StrideW: 2},
			{B: 1, C: 2, H: 16, W: 257, R: 2, S: 2, StrideH: 2, StrideW: 2},
			{B: 2, C: 33, H: 11, W: 8, R: 2, S: 2, StrideH: 2, StrideW: 2},
			{B: 2, C: 3, H: 8, W: 15, R: 2, S: 2, StrideH: 2, StrideW: 2},
			{B: 2, C: 2, H: 5, W: 19, R: 2, S: 2, StrideH: 2, StrideW: 2},
			{B: 2, C: 3, H: 13, W: 11, R: 3, S: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1},
			{B: 1, C: 2, H: 7, W: 9, R: 3, S: 2, StrideH: 1, StrideW: 3, PadH: 2, PadW: 1},
			{B: 1, C: 33, H: 8, W: 6, R: 8, S: 6, StrideH: 1, StrideW: 1},
			{B: 2, C: 3, H: 9, W: 37, R: 3, S: 3, StrideH: 2, StrideW: 2},
			{B: 1, C: 2, H: 20, W: 101, R: 2, S: 3, StrideH: 3, StrideW: 2, PadH: 1, PadW: 2},
		} {
			t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
				checkPool[float32](t, p)
				checkPool[float64](t, p)
			})
		}
	})
}

// Ties go to the first of the equal elements, and a NaN is never lost, wherever it is in the
// window.
func TestMaxPoolTiesAndNaN(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for _, p := range []Pool2D{
			{B: 1, C: 1, H: 2, W: 40, R: 2, S: 2, StrideH: 2, StrideW: 2},
			{B: 1, C: 1, H: 3, W: 20, R: 3, S: 2, StrideH: 2, StrideW: 2},
			{B: 1, C: 1, H: 3, W: 41, R: 3, S: 3, StrideH: 2, StrideW: 2},
			{B: 1, C: 1, H: 2, W: 68, R: 3, S: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 2},
		} {
			forward, err := p.MaxForward()
			if err != nil {
				t.Fatal(err)
			}
			backward, err := p.MaxBackward()
			if err != nil {
				t.Fatal(err)
			}
			x, y := make([]float32, p.H*p.W), make([]float32, p.Q())
			dout, dx := make([]float32, p.Q()), make([]float32, p.H*p.W)
			for i := range dout {
				dout[i] = float32(i + 1)
			}
			for pattern := range 17 {
				for i := range x {
					x[i] = float32(pattern >> (i / p.W % 2 * 2) >> (i % 2) & 1)
					if pattern == 16 {
						x[i] = float32(math.Inf(-1))
					}
				}
				Run(&backward, 0, 0, Operands[float32]{A: dout, B: x, Out: dx})
				want := make([]float32, len(dx))
				eachWindow(p, func(y int, xs []int) { want[firstMaximum(x, xs)] += dout[y] })
				if !slices.Equal(dx, want) {
					t.Errorf("%+v, pattern %b: gradient %v, want %v", p, pattern, dx, want)
				}
			}
			for at := range x {
				clear(x)
				x[at] = float32(math.NaN())
				Run(&forward, 0, 0, Operands[float32]{A: x, Out: y})
				eachWindow(p, func(i int, xs []int) {
					inside := false
					for _, k := range xs {
						inside = inside || k == at
					}
					if isNaN := y[i] != y[i]; isNaN != inside {
						t.Errorf("%+v, NaN at %d: output %d is %g", p, at, i, y[i])
					}
				})
			}
		}
	})
}

func TestPool2DValidate(t *testing.T) {
	for i, p := range []Pool2D{
		{},
		{B: 1, C: 1, H: 4, W: 4, R: 2, S: 2, StrideH: 0, StrideW: 1},
		{B: 1, C: 1, H: 4, W: 4, R: 2, S: 2, StrideH: 1, StrideW: 1, PadH: 2},
		{B: 1, C: 1, H: 4, W: 4, R: 5, S: 2, StrideH: 1, StrideW: 1},
		{B: 1 << 20, C: 1 << 20, H: 4, W: 4, R: 2, S: 2, StrideH: 1, StrideW: 1},
	} {
		if _, err := p.MaxForward(); err == nil {
			t.Errorf("case %d, %+v: no error", i, p)
		}
	}
}

// TestMaxPoolOfZeros: a maximum of zero is positive on every instruction set, wherever it is.
func TestMaxPoolOfZeros(t *testing.T) {
	numbers := []float64{0, math.Copysign(0, -1), math.Copysign(0, -1), -1}
	for _, p := range []Pool2D{
		{B: 1, C: 1, H: 8, W: 8, R: 2, S: 2, StrideH: 2, StrideW: 2},
		{B: 2, C: 3, H: 34, W: 34, R: 2, S: 2, StrideH: 2, StrideW: 2},
		{B: 2, C: 3, H: 17, W: 33, R: 3, S: 3, StrideH: 2, StrideW: 2, PadH: 1, PadW: 1},
		{B: 2, C: 3, H: 17, W: 33, R: 3, S: 3, StrideH: 1, StrideW: 1},
		{B: 2, C: 3, H: 17, W: 33, R: 3, S: 2, StrideH: 3, StrideW: 3},
	} {
		for _, p.ReLU = range []bool{false, true} {
			onEachInstructionSet(t, func(t *testing.T) {
				checkZeros[float32](t, p, numbers)
				checkZeros[float64](t, p, numbers)
			})
		}
	}
}

func checkZeros[T Float](t *testing.T, p Pool2D, numbers []float64) {
	t.Helper()
	plan, err := p.MaxForward()
	if err != nil {
		t.Fatal(err)
	}
	x := make([]T, plan.sizeA)
	for i := range x {
		x[i] = T(numbers[i*i/3%len(numbers)])
	}
	for i, v := range execute(t, &plan, inputs[T]{a: x}, false, nil) {
		if v == 0 && math.Signbit(float64(v)) {
			t.Fatalf("%T, %+v: maximum %d is a negative zero", v, p, i)
		}
	}
}
