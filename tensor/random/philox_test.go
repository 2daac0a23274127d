package random

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPhiloxKnownAnswers: kat_vectors of the Random123 distribution.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			counter: [4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
			key:     [2]uint32{0xffffffff, 0xffffffff},
			want:    [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			counter: [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			key:     [2]uint32{0xa4093822, 0x299f31d0},
			want:    [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Philox4x32(c.counter, c.key); got != c.want {
			t.Errorf("counter %08x, key %08x: got %08x, want %08x", c.counter, c.key, got, c.want)
		}
	}
}

// TestAddressLayout reads each field back from the bits where the documentation puts it, so the
// layout is injective.
func TestAddressLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Address{
			Seed:   rapid.Uint64().Draw(t, "seed"),
			Chain:  rapid.Uint32().Draw(t, "chain"),
			Step:   rapid.Uint64Range(0, MaxStep).Draw(t, "step"),
			Stream: rapid.Uint16Range(0, OrderStream-1).Draw(t, "stream"),
		}
		quad := rapid.Uint32().Draw(t, "quad")
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		key, counter := a.Key(), a.Counter(quad)
		back := Address{
			Seed:   uint64(key[0]) | uint64(key[1])<<32,
			Chain:  counter[3],
			Step:   uint64(counter[1]) | uint64(counter[2]&0xffff)<<32,
			Stream: uint16(counter[2] >> 16),
		}
		if back != a || counter[0] != quad {
			t.Fatalf("address %+v, quad %d read back as %+v, quad %d", a, quad, back, counter[0])
		}
	})
}

func TestAddressLimits(t *testing.T) {
	var words [8]uint32
	var normals [8]float32
	var block [BlockSize]float32
	for name, draw := range map[string]func(){
		"step":           func() { Bits(words[:], 0, Address{Step: MaxStep + 1}) },
		"stream":         func() { Uniforms(normals[:], 0, Address{Stream: OrderStream}) },
		"negative first": func() { Normals(normals[:], -1, Address{}) },
		"end":            func() { Normals(normals[:], MaxElements-7, Address{}) },
		"block":          func() { NormalBlock(Address{}, MaxElements/BlockSize, BlockSize, &block) },
		"negative block": func() { NormalBlock(Address{}, -1, BlockSize, &block) },
		"block's count":  func() { NormalBlock(Address{}, 0, BlockSize+1, &block) },
		"negative count": func() { NormalBlock(Address{}, 0, -1, &block) },
		"block's step":   func() { NormalBlock(Address{Step: MaxStep + 1}, 0, BlockSize, &block) },
		"epoch":          func() { NewOrder(1, 0, 0, MaxStep+1) },
		"index":          func() { Permute(5, 5, 0, 0, 0) },
		"empty order":    func() { Permute(0, 0, 0, 0, 0) },
	} {
		if !panics(draw) {
			t.Errorf("%s out of range: no panic", name)
		}
	}
	last := Address{Seed: 1<<64 - 1, Chain: 1<<32 - 1, Step: MaxStep, Stream: OrderStream - 1}
	if panics(func() { Normals(normals[:], MaxElements-8, last) }) {
		t.Error("the last elements of the last stream: panic")
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

func TestBits(t *testing.T) {
	a := Address{Seed: 7, Chain: 3, Step: 1 << 40, Stream: 9}
	var got [11]uint32
	Bits(got[:], 5, a)
	for i, word := range got {
		element := uint32(5 + i)
		if want := Philox4x32(a.Counter(element/4), a.Key())[element%4]; word != want {
			t.Errorf("element %d: got %08x, want %08x", element, word, want)
		}
	}
}
