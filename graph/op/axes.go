package op

import (
	"math/bits"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Axes is a set of axes: bit i stands for axis i, 0 being the outermost. The empty set stands for
// all axes.
type Axes uint16

// invalidAxis stands for all axes that no input can have: AxesOf cannot return an error, but Shape
// does for this bit.
const invalidAxis = 15

// AxesOf returns the set of the given axes.
func AxesOf(axes ...int) Axes {
	var set Axes
	for _, axis := range axes {
		if axis < 0 || axis > invalidAxis {
			axis = invalidAxis
		}
		set |= 1 << axis
	}
	return set
}

func (s Axes) has(axis int) bool { return s == 0 || s>>axis&1 == 1 }

// remaining returns the shape without the axes of the set.
func (s Axes) remaining(shape tensor.Shape) (tensor.Shape, error) {
	if err := checkAxisCount(shape); err != nil {
		return nil, err
	}
	if s.has(invalidAxis) && s != 0 {
		return nil, errors.Errorf("axes of an input of shape %v must be from 0 to %d", shape, len(shape)-1)
	}
	if last := bits.Len16(uint16(s)) - 1; last >= len(shape) {
		return nil, errors.Errorf("axes of an input of shape %v must be below %d, got %d", shape, len(shape), last)
	}
	rest := tensor.Shape{}
	for axis, extent := range shape {
		if !s.has(axis) {
			rest = append(rest, extent)
		}
	}
	return rest, nil
}

func checkAxisCount(shape tensor.Shape) error {
	if len(shape) > maxAxes {
		return errors.Errorf("input must have at most %d axes, got shape %v", maxAxes, shape)
	}
	return nil
}

// group is a run of neighbouring axes of one class, which kernels treat as one axis.
type group struct{ extent, class int }

// collapse merges neighbouring axes of equal class and drops axes of extent 1. A class is whatever
// the caller distinguishes: kept or summed over, repeated or not. The fewer the axes, the longer
// the contiguous runs of the loops. It returns at least one group.
func collapse(shape tensor.Shape, class func(axis int) int) []group {
	var groups []group
	for axis, extent := range shape {
		last := len(groups) - 1
		switch c := class(axis); {
		case extent == 1:
		case last >= 0 && groups[last].class == c:
			groups[last].extent *= extent
		default:
			groups = append(groups, group{extent, c})
		}
	}
	if groups == nil {
		groups = []group{{extent: 1}}
	}
	return groups
}
