package random

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/pollen-ml/pollen/internal/fixedseed"
)

// exactBoxMuller is the definition of boxMuller in float64.
func exactBoxMuller(w0, w1 uint32) (z0, z1 float64) {
	u, v := float64(w0|1)/(1<<32), (float64(w1)+0.5)/(1<<32)
	var logarithm float64
	if u < 0.5 {
		logarithm = math.Log(u)
	} else {
		logarithm = math.Log1p(-float64(-(w0 | 1)) / (1 << 32))
	}
	r := math.Sqrt(-2 * logarithm)
	// Reduced by quarters: in float64 the cosine of an angle near pi/2 has the angle's error.
	quarters := math.Floor(4*v + 0.5)
	s, c := math.Sincos(math.Pi / 2 * (4*v - quarters))
	switch int(quarters) % 4 {
	case 1:
		s, c = c, -s
	case 2:
		s, c = -s, -c
	case 3:
		s, c = -c, s
	}
	return r * c, r * s
}

// edgeWords returns the words at which the pieces of radius and circle meet.
func edgeWords() []uint32 {
	var words []uint32
	for shift := range 32 {
		for offset := range uint32(5) {
			words = append(words, 1<<shift+offset-2, -(1<<shift)+offset-2)
		}
	}
	for octant := range uint32(8) {
		for offset := range uint32(9) {
			words = append(words, octant<<29+offset-4)
		}
	}
	return words
}

// TestNormalAccuracy: relative to its own size, every normal is within 5 units of 2^-24 (3e-7) of
// the exact one, including the largest and the smallest.
func TestNormalAccuracy(t *testing.T) {
	const bound = 5
	worst, largest := 0.0, 0.0
	check := func(w0, w1 uint32) {
		x0, x1 := boxMuller(w0, w1)
		e0, e1 := exactBoxMuller(w0, w1)
		for _, pair := range [][2]float64{{float64(x0), e0}, {float64(x1), e1}} {
			err := math.Abs(pair[0]-pair[1]) / math.Abs(pair[1]) * (1 << 24)
			if !(err <= bound) {
				t.Fatalf("words %08x %08x: got %v, want %v, error %.2f * 2^-24", w0, w1, pair[0], pair[1], err)
			}
			worst, largest = max(worst, err), max(largest, math.Abs(pair[0]))
		}
	}
	edges := edgeWords()
	for _, w0 := range edges {
		for _, w1 := range edges {
			check(w0, w1)
		}
	}
	words := make([]uint32, 1<<20)
	Bits(words, 0, Address{Seed: 20})
	for i := 0; i < len(words); i += 2 {
		check(words[i], words[i+1])
		check(words[i]>>(words[i+1]%32), words[i+1])
	}
	t.Logf("largest error %.2f * 2^-24, largest normal %v", worst, largest)
	if want := math.Sqrt(64 * math.Ln2); math.Abs(largest-want) > 1e-5 {
		t.Errorf("largest normal: got %v, want %v", largest, want)
	}
}

// TestRangesAgree: an element does not depend on where its range begins or ends, nor on the
// function or type that draws it.
func TestRangesAgree(t *testing.T) {
	const length = 3 * BlockSize
	rapid.Check(t, func(t *rapid.T) {
		a := Address{
			Seed:   rapid.Uint64().Draw(t, "seed"),
			Chain:  rapid.Uint32().Draw(t, "chain"),
			Step:   rapid.Uint64Range(0, MaxStep).Draw(t, "step"),
			Stream: rapid.Uint16Range(0, OrderStream-1).Draw(t, "stream"),
		}
		block := rapid.IntRange(0, MaxElements/BlockSize-3).Draw(t, "block")
		base := block * BlockSize
		from := rapid.IntRange(0, length).Draw(t, "from")
		to := rapid.IntRange(from, length).Draw(t, "to")

		var blocks [length]float32
		for i := range length / BlockSize {
			NormalBlock(a, block+i, BlockSize, (*[BlockSize]float32)(blocks[i*BlockSize:]))
		}
		var short [BlockSize]float32
		count := rapid.IntRange(0, BlockSize).Draw(t, "count")
		NormalBlock(a, block, count, &short)
		if !slices.Equal(short[:count], blocks[:count]) {
			t.Fatalf("%d normals of a block are not its first ones", count)
		}
		singles, doubles := guarded[float32](to-from), guarded[float64](to-from)
		Normals(singles[1:to-from+1], base+from, a)
		Normals(doubles[1:to-from+1], base+from, a)
		checkGuards(t, singles)
		checkGuards(t, doubles)
		for i := range to - from {
			if singles[i+1] != blocks[from+i] || doubles[i+1] != float64(blocks[from+i]) {
				t.Fatalf("normal %d: block %v, float32 range %v, float64 range %v", base+from+i, blocks[from+i], singles[i+1], doubles[i+1])
			}
		}

		words := make([]uint32, to-from)
		Bits(words, base+from, a)
		Uniforms(singles[1:to-from+1], base+from, a)
		Uniforms(doubles[1:to-from+1], base+from, a)
		checkGuards(t, singles)
		checkGuards(t, doubles)
		for i, word := range words {
			element := base + from + i
			if want := Philox4x32(a.Counter(uint32(element/4)), a.Key())[element%4]; word != want {
				t.Fatalf("word %d: got %08x, want %08x", element, word, want)
			}
			want := (float64(word>>8) + 1) / (1 << 24)
			if doubles[i+1] != want || float64(singles[i+1]) != want {
				t.Fatalf("uniform %d: got %v and %v, want %v", element, singles[i+1], doubles[i+1], want)
			}
		}
	})
}

// guarded returns n elements with one on each side that must not be written.
func guarded[T Float](n int) []T {
	s := make([]T, n+2)
	s[0], s[n+1] = 12345, 12345
	return s
}

func checkGuards[T Float](t *rapid.T, s []T) {
	if s[0] != 12345 || s[len(s)-1] != 12345 {
		t.Fatalf("a range of %d elements wrote outside itself", len(s)-2)
	}
}

// TestNormalGolden pins the bits: a change of any operation shows, here and on every platform that
// runs the test.
func TestNormalGolden(t *testing.T) {
	normals := make([]float32, 1<<16)
	Normals(normals, 0, Address{Seed: 1, Chain: 2, Step: 3, Stream: 4})
	hash := uint64(14695981039346656037)
	for _, z := range normals {
		hash = (hash ^ uint64(math.Float32bits(z))) * 1099511628211
	}
	if want := uint64(0x46fc0e2dc145f983); hash != want {
		t.Errorf("hash of the bits: got %#x, want %#x; the first are %v", hash, want, normals[:4])
	}
}

func TestNoAllocation(t *testing.T) {
	singles, doubles := make([]float32, 1001), make([]float64, 1001)
	var sum uint64
	allocations := testing.AllocsPerRun(10, func() {
		a := Address{Seed: 5, Step: sum % 7}
		var block [BlockSize]float32
		NormalBlock(a, 3, BlockSize, &block)
		Normals(singles, 1, a)
		Normals(singles, 4, a)
		Normals(doubles, 1, a)
		Uniforms(singles, 2, a)
		order := NewOrder(1000, 1, 2, 3)
		sum += order.At(7) + Permute(1, 100, 1, 2, 3) + uint64(math.Float32bits(block[9]))
	})
	if allocations != 0 {
		t.Errorf("got %v allocations, want none", allocations)
	}
}
