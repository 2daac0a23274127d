package tensor

import (
	"fmt"
	"unsafe"
)

// DType is the type of a buffer's elements.
type DType uint8

// The element types.
const (
	Float32 DType = iota + 1 // training
	Float64                  // reference computations and energies
	Uint8                    // images as they are stored
	Int32                    // labels and classes
	Uint64                   // a chain's header: seed, number, step
)

// FloatElement constrains the element types of numerical kernels.
type FloatElement interface{ ~float32 | ~float64 }

// Element constrains the element types of buffers.
type Element interface {
	float32 | float64 | uint8 | int32 | uint64
}

var dtypes = map[DType]struct{ name, suffix string }{
	Float32: {"float32", "f32"},
	Float64: {"float64", "f64"},
	Uint8:   {"uint8", "u8"},
	Int32:   {"int32", "i32"},
	Uint64:  {"uint64", "u64"},
}

// Size returns the bytes of one element. Slice calls it for each tile, so it does not use the map.
func (d DType) Size() int {
	switch d {
	case Float64, Uint64:
		return 8
	case Float32, Int32:
		return 4
	case Uint8:
		return 1
	}
	return 0
}

// String returns Go's name of the type.
func (d DType) String() string {
	if t, ok := dtypes[d]; ok {
		return t.name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Suffix returns the ending of kernel names, such as "f32" in relu_fwd_f32.
func (d DType) Suffix() string { return dtypes[d].suffix }

// IsFloat reports whether gradients can have this type.
func (d DType) IsFloat() bool { return d == Float32 || d == Float64 }

// DTypeOf returns the DType of T.
func DTypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case uint8:
		return Uint8
	case int32:
		return Int32
	default:
		return Uint64
	}
}

// Bytes returns the memory of values as bytes, without copying.
func Bytes[T Element](values []T) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), len(values)*int(unsafe.Sizeof(values[0])))
}

// Convert returns a copy of values as another type of elements, by Go's conversion of numbers.
func Convert[To, From Element](values []From) []To {
	converted := make([]To, len(values))
	for i, v := range values {
		converted[i] = To(v)
	}
	return converted
}
