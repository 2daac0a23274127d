package tensor

import (
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// Shape is the extent of each axis, outermost first. The empty shape is a scalar's: one element.
type Shape []int

// Elements is the product of the extents.
func (s Shape) Elements() int {
	n := 1
	for _, extent := range s {
		n *= extent
	}
	return n
}

// Equal reports whether both have the same axes.
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

// Validate refuses extents below one and shapes whose elements cannot be counted.
func (s Shape) Validate() error {
	n := 1
	for i, extent := range s {
		if extent < 1 {
			return errors.Errorf("tensor: shape %v: axis %d is %d, wants at least 1", s, i, extent)
		}
		if n > math.MaxInt/16/extent {
			return errors.Errorf("tensor: shape %v: too many elements", s)
		}
		n *= extent
	}
	return nil
}

// String is "[100 1 28 28]".
func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, extent := range s {
		parts[i] = fmt.Sprint(extent)
	}
	return "[" + strings.Join(parts, " ") + "]"
}
