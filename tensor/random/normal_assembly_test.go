//go:build (amd64 || arm64) && !purego

package random

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// compareWithPortable compares every bit of assembly and Go, over addresses that differ in every
// word and counters that wrap.
func compareWithPortable(t *testing.T) {
	words := func(i uint32) [4]uint32 { return Philox4x32([4]uint32{i}, [2]uint32{11, 12}) }
	blocks := 1 << 14
	if !testenv.All(t) {
		blocks = 1 << 10
	}
	for i := range uint32(blocks) {
		x, y := words(2*i), words(2*i+1)
		a := Address{
			Seed:   uint64(x[0])<<32 | uint64(x[1]),
			Chain:  x[2],
			Step:   uint64(x[3])<<16 | uint64(y[0]>>16),
			Stream: uint16(y[1] & 0xfff),
		}
		quad := y[2]
		if i%16 == 0 {
			quad = -(i / 16) % 64
		}
		n := BlockSize - int(i%8)*normalGroup
		compareFill(t, fillNormals, normalsPortable, n, quad, a)
		compareFill(t, fillUniforms, uniformsPortable, n, quad, a)
	}
}

func compareFill(t *testing.T, fast, portable func(dst []float32, quad uint32, a Address), n int, quad uint32, a Address) {
	t.Helper()
	var got, want [BlockSize]float32
	fast(got[:n], quad, a)
	portable(want[:n], quad, a)
	for j := range got {
		if math.Float32bits(got[j]) != math.Float32bits(want[j]) {
			t.Fatalf("address %+v, quad %d, element %d of %d: assembly %v, Go %v", a, quad, j, n, got[j], want[j])
		}
	}
}
