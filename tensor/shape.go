package tensor

import (
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// Shape is the extent of each axis, outermost first. The empty shape is a scalar, with one element.
type Shape []int

// Elements returns the product of the extents.
func (s Shape) Elements() int {
	n := 1
	for _, extent := range s {
		n *= extent
	}
	return n
}

// Equal reports whether s and other have the same extents.
func (s Shape) Equal(other Shape) bool {
	if len(s) != len(other) {
		return false
	}
	for i := range s {
		if s[i] != other[i] {
			return false
		}
	}
	return true
}

// Validate returns an error if an extent is less than 1 or the number of elements overflows.
func (s Shape) Validate() error {
	n := 1
	for i, extent := range s {
		if extent < 1 {
			return errors.Errorf("tensor: shape %v: axis %d must be at least 1, got %d", s, i, extent)
		}
		if n > math.MaxInt/16/extent {
			return errors.Errorf("tensor: shape %v: too many elements", s)
		}
		n *= extent
	}
	return nil
}

// String returns, for example, "[100 1 28 28]".
func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, extent := range s {
		parts[i] = fmt.Sprint(extent)
	}
	return "[" + strings.Join(parts, " ") + "]"
}
