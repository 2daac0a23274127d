package onnx

import (
	"slices"

	"github.com/pkg/errors"
)

// windowOf reads the attributes of a window, which moves over the last axes of input 0. kernel is
// its size if the attribute kernel_shape is absent.
func (t *translator) windowOf(image, kernel []int) (*window, error) {
	axes := len(image)
	if err := t.keepsExamplesApart(1, 2+axes); err != nil {
		return nil, err
	}
	w := &window{kernel: kernel}
	for _, a := range []struct {
		name  string
		to    *[]int
		ones  bool
		count int
	}{{"kernel_shape", &w.kernel, false, axes}, {"strides", &w.stride, true, axes}, {"dilations", &w.dilation, true, axes}} {
		given, ok, err := t.integersOf(a.name, -1)
		if err != nil {
			return nil, err
		}
		switch {
		case ok:
			*a.to = given
		case a.ones:
			*a.to = slices.Repeat([]int{1}, axes)
		}
		if len(*a.to) != axes || axes > 0 && slices.Min(*a.to) < 1 {
			return nil, errors.Errorf("%s must be at least 1 for each of %d axes, got %v", a.name, axes, *a.to)
		}
	}
	return w, t.padding(w, image)
}

// padding reads pads and auto_pad.
func (t *translator) padding(w *window, image []int) error {
	axes := len(image)
	w.before, w.after = make([]int, axes), make([]int, axes)
	pads, given, err := t.integersOf("pads", -1)
	if err != nil {
		return err
	}
	switch mode := t.text("auto_pad", "NOTSET"); mode {
	case "NOTSET", "":
		if !given {
			return nil
		}
		if len(pads) != 2*axes || axes > 0 && slices.Min(pads) < 0 {
			return errors.Errorf("pads must be at least 0 on both sides of each of %d axes, got %v", axes, pads)
		}
		copy(w.before, pads)
		copy(w.after, pads[axes:])
	case "VALID":
	case "SAME_UPPER", "SAME_LOWER":
		for i, extent := range image {
			out := (extent + w.stride[i] - 1) / w.stride[i]
			total := max(0, (out-1)*w.stride[i]+w.reach(i)-extent)
			w.before[i], w.after[i] = total/2, total-total/2
			if mode == "SAME_LOWER" {
				w.before[i], w.after[i] = w.after[i], w.before[i]
			}
		}
	default:
		return errors.Errorf("auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got %q", mode)
	}
	return nil
}

func pair2(v []int) [2]int { return [2]int{v[0], v[1]} }
