package onnx

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// pad translates Pad. Zeros around images stay a margin of the value, which a convolution or
// pooling that reads it takes as its own padding.
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

// margin is rows and columns of zeros around images, for each axis.
type margin struct{ before, after [2]int }

// imageMargin returns the margin that pads images on their last two axes, and nil if the padding is
// of another kind, or large enough to be worth checking.
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

// surrounded puts the margin around the images.
func (t *translator) surrounded(v value) (value, error) {
	y := value{node: v.node}
	for i := range 2 {
		if v.margin.before[i]+v.margin.after[i] == 0 {
			continue
		}
		var err error
		if y, err = t.filled(y, 2+i, v.margin.before[i], v.margin.after[i], 0); err != nil {
			return value{}, err
		}
	}
	return y, nil
}

// padded extends an axis on both sides; negative numbers crop it.
func (t *translator) padded(x value, axis, before, after int, mode string, fill float64) (value, error) {
	extent := x.shape()[axis]
	if total := extent + before + after; total < 1 || max(abs(before), abs(after)) > maxFolded {
		return value{}, errors.Errorf("pads %d and %d of axis %d of shape %v leave nothing, or are too large", before, after, axis, x.shape())
	}
	indices := span(-before, 1, extent+before+after)
	if mode == "constant" && (before > 0 || after > 0) {
		return t.filled(x, axis, before, after, fill)
	}
	for k, i := range indices {
		switch mode {
		case "constant": // only crops
		case "edge":
			i = max(0, min(extent-1, i))
		case "wrap":
			i = ((i % extent) + extent) % extent
		case "reflect":
			if extent == 1 {
				i = 0
				break
			}
			period := 2 * (extent - 1)
			if i = ((i % period) + period) % period; i >= extent {
				i = period - i
			}
		default:
			return value{}, errors.Errorf("mode must be constant, reflect, edge or wrap, got %q", mode)
		}
		indices[k] = i
	}
	return t.take(x, axis, indices)
}

// filled pads an axis with a number.
func (t *translator) filled(x value, axis, before, after int, fill float64) (value, error) {
	extent := x.shape()[axis]
	if before < 0 || after < 0 { // crop that side first
		cropped := span(max(0, -before), 1, extent-max(0, -before)-max(0, -after))
		var err error
		if x, err = t.take(x, axis, cropped); err != nil {
			return value{}, err
		}
		extent, before, after = len(cropped), max(0, before), max(0, after)
	}
	total := before + extent + after
	margin := make([]int, len(x.shape()))
	for i := range margin {
		margin[i] = 1
	}
	margin[axis] = total
	edges := &ndarray{margin, Float32, make([]float64, total)}
	for i := range total {
		if i < before || i >= before+extent {
			edges.values[i] = fill
		}
	}
	if x.array != nil {
		side := func(count int) *ndarray {
			shape := slices.Clone(x.shape())
			shape[axis] = count
			return &ndarray{shape, x.array.kind, slices.Repeat([]float64{fill}, product(shape))}
		}
		y, err := joined([]*ndarray{side(before), x.array, side(after)}, axis)
		return value{array: y}, err
	}
	y := t.b.Apply(array.Unslice{Slice: array.Slice{Axis: axis, Start: before, Step: 1, Count: extent}, Extent: total}, x.node)
	if fill != 0 {
		mask, err := t.constant(edges)
		if err != nil {
			return value{}, err
		}
		y = t.b.Apply(op.Add{}, y, mask)
	}
	return value{node: y}, t.b.Err()
}

func abs(v int) int { return max(v, -v) }
