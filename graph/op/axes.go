package op

import (
	"math/bits"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// Axes is a set of axes: bit i stands for axis i, 0 being the outermost. The empty set stands for
// all axes.
type Axes uint16

// invalidAxis is the bit set for an axis that no input can have, so that Shape refuses it.
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

// remaining is the shape without the axes of the set.
func (s Axes) remaining(shape tensor.Shape) (tensor.Shape, error) {
	if err := checkAxisCount(shape); err != nil {
		return nil, err
	}
	if last := bits.Len16(uint16(s)) - 1; last >= len(shape) {
		return nil, errors.Errorf("input has shape %v, got axes up to %d, wants axes below %d", shape, last, len(shape))
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
		return errors.Errorf("input has shape %v, wants at most %d axes", shape, maxAxes)
	}
	return nil
}

// group is neighbouring axes of one class, which count as one axis.
type group struct{ extent, class int }

// collapse joins neighbouring axes of one class and leaves out axes of extent 1. There is always at
// least one group; class is the class of an axis.
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
