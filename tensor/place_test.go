package tensor

import (
	"math/rand/v2"
	"testing"
)

// TestPlace places made-up buffers: buffers that may not share memory do not overlap, none lies
// above a gap that it fits into, and the size counts only bytes that a buffer occupies.
func TestPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + r.IntN(12)
		buffers, may := make([]*Buffer, n), make([][]bool, n)
		for i := range buffers {
			buffers[i] = NewBuffer("b", Scratch, Float32, 1+r.IntN(100))
			may[i] = make([]bool, n)
			for j := range i {
				may[i][j] = r.IntN(3) > 0
				may[j][i] = may[i][j]
			}
		}
		bytes := Place(buffers, func(i, j int) bool { return may[i][j] })
		end := 0
		free := func(i, at int) bool {
			for j, other := range buffers[:i] {
				if !may[i][j] && at < other.Offset+Align(other.Bytes()) && other.Offset < at+Align(buffers[i].Bytes()) {
					return false
				}
			}
			return true
		}
		for i, b := range buffers {
			if b.Offset%Alignment != 0 || !free(i, b.Offset) {
				t.Fatalf("buffer %d, %v, overlaps one that it may not: %v", i, b, buffers)
			}
			for at := 0; at < b.Offset; at += Alignment {
				if free(i, at) {
					t.Fatalf("buffer %d, %v, has room at %d: %v", i, b, at, buffers)
				}
			}
			end = max(end, b.Offset+Align(b.Bytes()))
		}
		if bytes != end {
			t.Fatalf("%d bytes, the last buffer ends at %d", bytes, end)
		}
	}
}
