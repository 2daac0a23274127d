//go:build amd64 && !purego

package random

import (
	"math"
	"testing"
)

// TestAssemblyMatchesPortable compares every bit, over addresses that differ in every word and counters that wrap.
func TestAssemblyMatchesPortable(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has no AVX2")
	}
	words := func(i uint32) [4]uint32 { return Philox4x32([4]uint32{i}, [2]uint32{11, 12}) }
	blocks := 1 << 14
	if testing.Short() {
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
		var got, want [BlockSize]float32
		fillNormals(got[:], quad, a)
		normalsPortable(want[:], quad, a)
		for j := range got {
			if math.Float32bits(got[j]) != math.Float32bits(want[j]) {
				t.Fatalf("address %+v, quad %d, element %d: assembly %v, Go %v", a, quad, j, got[j], want[j])
			}
		}
	}
}
