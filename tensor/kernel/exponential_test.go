package kernel

import (
	"math"
	"testing"
)

// checkExpm1 compares with the standard library, in units of 2^-24 of the result.
func checkExpm1(t *testing.T, x []float32) {
	t.Helper()
	y := make([]float32, len(x))
	Expm1(y, x)
	worst, at := 0.0, float32(0)
	for i, v := range x {
		want := math.Expm1(float64(v))
		if float64(y[i]) == want || float32(want) == y[i] {
			continue
		}
		if e := math.Abs(float64(y[i])-want) / math.Abs(want) * 0x1p24; !(e <= worst) {
			worst, at = e, v
		}
	}
	if !(worst <= 4) {
		t.Errorf("the error at %v is %v units of 2^-24, want at most 4", at, worst)
	}
	t.Logf("largest error %.2f units of 2^-24, at %v", worst, at)
}

func TestExpm1(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		var dense, tiny []float32
		for i := range 400_001 {
			dense = append(dense, float32(i-200_000)*0x1p-11*0.91)
		}
		for x := float32(1); x > 1e-38; x *= 0.93 {
			tiny = append(tiny, x, -x)
		}
		checkExpm1(t, dense)
		checkExpm1(t, tiny)
		inf := float32(math.Inf(1))
		special := []float32{0, inf, -inf, 88.5, 88.73, 1e30, -1e30}
		want := []float32{0, inf, -1, 2.7230878e38, inf, inf, -1}
		Expm1(special, special)
		for i, v := range special {
			if math.Abs(float64(v)-float64(want[i])) > 1e-4*math.Abs(float64(want[i])) {
				t.Errorf("special value %d is %v, want %v", i, v, want[i])
			}
		}
		for _, n := range []int{1, 8} {
			nan := make([]float32, n)
			nan[n-1] = float32(math.NaN())
			if Expm1(nan, nan); nan[n-1] == nan[n-1] {
				t.Errorf("e^NaN - 1 is %v, want NaN", nan[n-1])
			}
		}
	})
}

// Every length and place gives the same bits, and nothing beyond the end is written.
func TestExpm1Places(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		var x, want [70]float32
		for i := range x {
			x[i] = float32(i%33)/4 - 4.1
		}
		Expm1(want[:], x[:])
		for n := range 35 {
			for from := range 9 {
				var y [70]float32
				Expm1(y[from:from+n], x[from:from+n])
				for i := range y {
					if inside := i >= from && i < from+n; inside && y[i] != want[i] || !inside && y[i] != 0 {
						t.Fatalf("%d elements from %d: element %d is %v, want %v or, outside, 0", n, from, i, y[i], want[i])
					}
				}
			}
		}
	})
}

func BenchmarkExpm1(b *testing.B) {
	x, y := make([]float32, 8192), make([]float32, 8192)
	for i := range x {
		x[i] = float32(i%97)/12 - 4
	}
	for b.Loop() {
		Expm1(y, x)
	}
	b.ReportMetric(float64(len(x))*float64(b.N)/b.Elapsed().Seconds()/1e9, "elements/ns")
}
