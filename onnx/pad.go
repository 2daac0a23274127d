package onnx

import (
	"slices"

	"github.com/pkg/errors"
)

// pad translates Pad. Zeros around images become a margin of the value, which a convolution that
// reads it adds to its own padding.
func pad(t *translator, x value) (value, error) {
	axes := len(x.shape())
	pads, _, err := t.integersOf("pads", 1)
	if err != nil {
		return value{}, err
	}
	along := span(0, 1, axes)
	if t.has(3) {
		if along, _, err = t.integersOf("axes", 3); err != nil {
			return value{}, err
		}
	}
	if len(pads) != 2*len(along) {
		return value{}, errors.Errorf("pads must have two numbers for each of %d axes, got %v", len(along), pads)
	}
	before, after := make([]int, axes), make([]int, axes)
	for i, axis := range along {
		at, err := t.axis(axis, axes, false)
		if err != nil {
			return value{}, err
		}
		before[at], after[at] = pads[i], pads[i+len(along)]
	}
	fill, err := t.number("value", 2, 0)
	if err != nil {
		return value{}, err
	}
	mode := t.text("mode", "constant")
	if m := imageMargin(x, before, after); m != nil && mode == "constant" && fill == 0 {
		return value{node: x.node, margin: m}, nil
	}
	for axis := range axes {
		if before[axis] == 0 && after[axis] == 0 {
			continue
		}
		if x, err = t.padded(x, axis, before[axis], after[axis], mode, fill); err != nil {
			return value{}, err
		}
	}
	return x, nil
}

// imageMargin returns the margin that pads images on their last two axes. It returns nil for other
// padding, and for more than maxMargin, which padded checks.
func imageMargin(x value, before, after []int) *margin {
	if x.node == nil || len(before) != 4 || slices.Min(before) < 0 || slices.Min(after) < 0 {
		return nil
	}
	if before[0]+before[1]+after[0]+after[1] > 0 || max(slices.Max(before), slices.Max(after)) > maxMargin {
		return nil
	}
	return &margin{[2]int(before[2:]), [2]int(after[2:])}
}

// maxMargin is the maximum width of a margin.
const maxMargin = 1 << 10
