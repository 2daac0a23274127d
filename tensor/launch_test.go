package tensor

import (
	"math"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	b := NewBuffer("b", Scratch, Float32, 3)
	for _, test := range []struct {
		name string
		got  Argument
		want Argument
	}{
		{"in", In(b), Argument{Kind: BufferKind, Buffer: b, Access: Read}},
		{"out", Out(b), Argument{Kind: BufferKind, Buffer: b, Access: Write}},
		{"in and out", InOut(b), Argument{Kind: BufferKind, Buffer: b, Access: Read | Write}},
		{"int", Int(7), Argument{Kind: Int32Kind, Bits: 7}},
		{"negative int", Int(-1), Argument{Kind: Int32Kind, Bits: 0xffffffff}},
		{"largest int", Int(1<<31 - 1), Argument{Kind: Int32Kind, Bits: 0x7fffffff}},
		{"smallest int", Int(-1 << 31), Argument{Kind: Int32Kind, Bits: 0x80000000}},
		{"too large an int", Int(1 << 31), Argument{Kind: OverflowKind, Bits: 1 << 31}},
		{"too small an int", Int(-1<<31 - 1), Argument{Kind: OverflowKind, Bits: 0xffffffff7fffffff}},
		{"uint", Uint(math.MaxUint32), Argument{Kind: Uint32Kind, Bits: 0xffffffff}},
		{"float32", Float(Float32, 0.1), Argument{Kind: Float32Kind, Bits: 0x3dcccccd}},
		{"float64", Float(Float64, 0.1), Argument{Kind: Float64Kind, Bits: 0x3fb999999999999a}},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, test.got, test.want)
		}
	}
}

// The tiles of a kernel cover each row once, in order, and depend only on the shape.
func TestRowsCoverEachOnce(t *testing.T) {
	const tile = elementsPerTile
	for _, size := range [][2]int{{1, 1}, {31, 1}, {tile, 1}, {tile + 1, 1}, {3 * tile, 1}, {33, 257}, {7, 100000}, {1, 0}, {0, 5}} {
		rows, width := size[0], size[1]
		next := 0
		host := Rows(rows, width, func(_ *Args, lo, hi int) {
			if lo != next || hi <= lo || hi > rows {
				t.Errorf("%v: a tile of rows %d to %d comes after row %d", size, lo, hi, next)
			}
			if hi-lo > 1 && (hi-lo)*width > elementsPerTile {
				t.Errorf("%v: a tile of rows %d to %d is larger than %d elements", size, lo, hi, elementsPerTile)
			}
			next = hi
		})
		for tile := range host.Phases[0].Tiles {
			host.Phases[0].Run(nil, tile)
		}
		if next != rows || len(host.Phases) != 1 {
			t.Errorf("%v: the tiles end at row %d (%d phases)", size, next, len(host.Phases))
		}
	}
	if got := Rows(3*elementsPerTile, 1, nil).Phases[0].Tiles; got != 3 {
		t.Errorf("elementwise has %d tiles, want 3", got)
	}
	calls := 0
	single := Single(func(*Args) { calls++ })
	for tile := range single.Phases[0].Tiles {
		single.Phases[0].Run(nil, tile)
	}
	if calls != 1 {
		t.Errorf("single runs %d times", calls)
	}
}

func TestSliceOfAnotherTypePanics(t *testing.T) {
	a := &Args{launch: &Launch{Kernel: "test_f32", Arguments: []Argument{In(placed("x", Scratch, Float32, 2, 0)), Int(3)}}}
	a.base[Scratch] = make([]byte, 64)
	if x := Slice[float32](a, 0); len(x) != 2 || cap(x) != 2 {
		t.Errorf("got %d elements, capacity %d, want 2", len(x), cap(x))
	}
	for name, slice := range map[string]func(){
		"float64 of a float32 buffer": func() { Slice[float64](a, 0) },
		"a scalar":                    func() { Slice[float32](a, 1) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "test_f32: argument") {
					t.Errorf("%s: panics with %q", name, text)
				}
			}()
			slice()
		}()
	}
}

func TestWorkspaceOfAnyType(t *testing.T) {
	a := &Args{workspace: make([]byte, 36), private: nil}
	if n := len(Workspace[float64](a)); n != 4 {
		t.Errorf("36 bytes hold %d float64, want 4", n)
	}
	if n := len(Workspace[uint8](a)); n != 36 {
		t.Errorf("36 bytes hold %d uint8", n)
	}
	if p := Private[int32](a); p != nil {
		t.Errorf("no bytes hold %v", p)
	}
}
