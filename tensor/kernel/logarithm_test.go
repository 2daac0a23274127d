package kernel

import (
	"math"
	"testing"
)

// The logarithm of every kind of number, to its last bits.
func TestLog(t *testing.T) {
	x := []float32{0, float32(math.Copysign(0, -1)), -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32,
		-math.MaxFloat32, -math.SmallestNonzeroFloat32, 1}
	for bits := uint32(1); bits < 0x7f800000; bits += 9973 {
		x = append(x, math.Float32frombits(bits))
	}
	for near := range uint32(2000) {
		for _, bits := range []uint32{0x3f800000 + near, 0x3f800000 - near, logRootHalf - 1000 + near, near} {
			x = append(x, math.Float32frombits(bits))
		}
	}
	for len(x)%passLanes != 0 {
		x = append(x, 2)
	}
	onEachInstructionSet(t, func(t *testing.T) {
		y := make([]float32, len(x))
		Log(y, x)
		worst := 0.0
		for i, v := range x {
			want := math.Log(float64(v))
			if single := log(v); !sameBits(y[i], single) {
				t.Fatalf("Log of %v is %v, as a single number %v", v, y[i], single)
			}
			if want-want != 0 || want == 0 {
				if !sameBits(y[i], float32(want)) {
					t.Errorf("Log of %v is %v, want %v", v, y[i], want)
				}
				continue
			}
			worst = max(worst, math.Abs(float64(y[i])-want)/math.Abs(want))
		}
		if worst > 0x1p-23 {
			t.Errorf("the largest relative error is %g, want at most 2^-23", worst)
		}
		t.Logf("largest relative error %.3g units of 2^-24", worst*0x1p24)
	})
}
