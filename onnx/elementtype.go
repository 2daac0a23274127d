package onnx

import (
	"strconv"

	"github.com/pkg/errors"
)

// ElementType is the type of a tensor's elements, numbered as in the format.
type ElementType int

// The types that can be read.
const (
	Float32  ElementType = 1
	Uint8    ElementType = 2
	Int8     ElementType = 3
	Uint16   ElementType = 4
	Int16    ElementType = 5
	Int32    ElementType = 6
	Int64    ElementType = 7
	Bool     ElementType = 9
	Float16  ElementType = 10
	Float64  ElementType = 11
	Uint32   ElementType = 12
	Uint64   ElementType = 13
	BFloat16 ElementType = 16
)

// elementTypes has the name of each type and the bytes of an element in raw data.
var elementTypes = map[ElementType]struct {
	name string
	size int
}{
	Float32: {"float32", 4}, Float64: {"float64", 8}, Float16: {"float16", 2}, BFloat16: {"bfloat16", 2},
	Int8: {"int8", 1}, Int16: {"int16", 2}, Int32: {"int32", 4}, Int64: {"int64", 8},
	Uint8: {"uint8", 1}, Uint16: {"uint16", 2}, Uint32: {"uint32", 4}, Uint64: {"uint64", 8}, Bool: {"bool", 1},
}

// String returns the name of the type.
func (t ElementType) String() string {
	if known, ok := elementTypes[t]; ok {
		return known.name
	}
	return "type " + strconv.Itoa(int(t))
}

// Floating reports whether the elements are floating-point numbers.
func (t ElementType) Floating() bool {
	return t == Float32 || t == Float64 || t == Float16 || t == BFloat16
}

// maxElements is the maximum number of elements of a tensor or of a value.
const maxElements = 1 << 31

// elements returns the number of elements of a shape.
func elements(shape []int) (int, error) {
	n := 1
	for _, extent := range shape {
		if extent < 0 || extent > 0 && n > maxElements/extent {
			return 0, errors.Errorf("shape %v must have extents of at least 0 and at most %d elements", shape, maxElements)
		}
		n *= extent
	}
	return n, nil
}
