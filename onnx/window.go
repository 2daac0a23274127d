package onnx

import (
	"slices"

	"github.com/pkg/errors"
)

// windowOf reads the attributes of a window, which moves over the last axes of input 0. kernel is
// its size if the attribute kernel_shape is absent.
func (t *translator) windowOf(image, kernel []int) (*window, error) {
	w, err := t.unpadded(image, kernel)
	if err != nil {
		return nil, err
	}
	return w, t.padding(w, image)
}

// unpadded is windowOf without padding.
func (t *translator) unpadded(image, kernel []int) (*window, error) {
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
	w.before, w.after = make([]int, axes), make([]int, axes)
	return w, nil
}

// padding reads pads and auto_pad. Windows that are smaller than the stride may end before the last
// element. If they leave out one element, all programs begin at the first one; if they leave out
// several, TensorFlow still does, ONNX Runtime begins a convolution later, and refuses pooling.
func (t *translator) padding(w *window, image []int) error {
	axes := len(image)
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
			total := (out-1)*w.stride[i] + w.reach(i) - extent
			if total < -1 {
				return errors.Errorf("auto_pad %s with windows of %d and a stride of %d leaves out %d of %d elements, which programs choose differently: "+
					"export the model with pads", mode, w.reach(i), w.stride[i], -total, extent)
			}
			total = max(0, total)
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
