package tensor

import (
	"math"
	"testing"
	"unsafe"
)

func TestShape(t *testing.T) {
	for _, test := range []struct {
		shape    Shape
		elements int
		text     string
	}{
		{nil, 1, "[]"},
		{Shape{}, 1, "[]"},
		{Shape{31}, 31, "[31]"},
		{Shape{100, 1, 28, 28}, 78400, "[100 1 28 28]"},
	} {
		if got := test.shape.Elements(); got != test.elements {
			t.Errorf("%v has %d elements, want %d", test.shape, got, test.elements)
		}
		if got := test.shape.String(); got != test.text {
			t.Errorf("got %q, want %q", got, test.text)
		}
		if err := test.shape.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, test := range []struct {
		shape Shape
		part  string
	}{
		{Shape{3, 0}, "axis 1 must be at least 1, got 0"},
		{Shape{-1}, "axis 0 must be at least 1, got -1"},
		{Shape{math.MaxInt}, "too many"},
		{Shape{1 << 31, 1 << 31}, "too many"},
		{Shape{1 << 40, 1 << 40, 0}, "too many"},
	} {
		wantError(t, test.shape.String(), test.shape.Validate(), test.part)
	}
	for _, test := range []struct {
		a, b  Shape
		equal bool
	}{
		{nil, Shape{}, true},
		{Shape{2, 3}, Shape{2, 3}, true},
		{Shape{2, 3}, Shape{3, 2}, false},
		{Shape{2, 3}, Shape{2}, false},
		{Shape{1}, Shape{}, false},
	} {
		if test.a.Equal(test.b) != test.equal || test.b.Equal(test.a) != test.equal {
			t.Errorf("%v equal to %v, want %v", test.a, test.b, test.equal)
		}
	}
}

func TestDTypes(t *testing.T) {
	for _, test := range []struct {
		got          DType
		want         DType
		name, suffix string
		size         uintptr
		float        bool
	}{
		{DTypeOf[float32](), Float32, "float32", "f32", unsafe.Sizeof(float32(0)), true},
		{DTypeOf[float64](), Float64, "float64", "f64", unsafe.Sizeof(float64(0)), true},
		{DTypeOf[uint8](), Uint8, "uint8", "u8", 1, false},
		{DTypeOf[int32](), Int32, "int32", "i32", 4, false},
		{DTypeOf[uint64](), Uint64, "uint64", "u64", 8, false},
	} {
		d := test.got
		if d != test.want || d.String() != test.name || d.Suffix() != test.suffix || d.Size() != int(test.size) || d.IsFloat() != test.float {
			t.Errorf("%v: suffix %q, %d bytes, float %v; want %+v", d, d.Suffix(), d.Size(), d.IsFloat(), test)
		}
	}
	if got := DType(77).String(); got != "DType(77)" {
		t.Errorf("got %q", got)
	}
}

func TestBuffer(t *testing.T) {
	b := NewBuffer("conv1.weight", Chain, Float32, 1600)
	if b.Offset != -1 || b.Bytes() != 6400 {
		t.Errorf("offset %d, %d bytes", b.Offset, b.Bytes())
	}
	b.Offset = 4096
	if got := b.String(); got != "conv1.weight chain+4096 float32[1600]" {
		t.Errorf("got %q", got)
	}
	for n, want := range map[int]int{0: 0, 1: 64, 63: 64, 64: 64, 65: 128} {
		if got := Align(n); got != want {
			t.Errorf("%d bytes align to %d, want %d", n, got, want)
		}
	}
}

func TestBytesIsTheMemory(t *testing.T) {
	values := []uint64{1, 2}
	raw := Bytes(values)
	raw[8] = 7
	if len(raw) != 16 || values[1] != 7 {
		t.Errorf("%d bytes; a byte written gives %v", len(raw), values)
	}
	if raw := Bytes([]float32(nil)); raw != nil {
		t.Errorf("no values have bytes %v", raw)
	}
}
