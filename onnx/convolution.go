package onnx

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// conv translates Conv, over images with one or two axes.
func conv(t *translator) ([]value, error) {
	if err := t.needs(2); err != nil {
		return nil, err
	}
	images := t.values[t.inputs[0]]
	if images.margin == nil {
		x, err := t.x(0)
		if err != nil {
			return nil, err
		}
		images = value{node: x}
	}
	weight, err := t.operand(1)
	if err != nil {
		return nil, err
	}
	shape, size := images.shape(), weight.shape()
	if len(shape) != len(size) || len(shape) != 3 && len(shape) != 4 {
		return nil, errors.Errorf("images must have one or two axes, and filters as many: got %v and %v", shape, size)
	}
	w, err := t.windowOf(shape[2:], size[2:])
	if err != nil {
		return nil, err
	}
	if m := images.margin; m != nil {
		for i := range 2 {
			w.before[i] += m.before[i]
			w.after[i] += m.after[i]
		}
	}
	x, groups := images.node, t.integer("group", 1)
	c := &convolution{x: x, window: w, groups: groups, filter: t.inputs[1]}
	if t.has(2) {
		c.bias = t.inputs[2]
	}
	if len(shape) == 4 && t.onlyNormalized() {
		if t.has(2) {
			_, err = t.operand(2) // parameters have the order of the nodes that read them
		}
		return []value{{conv: c}}, err
	}
	filter, err := t.x(1)
	if err != nil {
		return nil, err
	}
	if len(shape) == 3 {
		x, filter, w = t.view(x, []int{shape[0], shape[1], 1, shape[2]}), t.view(filter, []int{size[0], size[1], 1, size[2]}), w.flat()
		y, err := t.convolved(x, filter, w, groups)
		if err != nil {
			return nil, err
		}
		return t.biased(y, true)
	}
	y, err := t.convolved(x, filter, w, groups)
	if err != nil {
		return nil, err
	}
	made, err := t.biased(y, false)
	if err == nil {
		made[0].conv = c
	}
	return made, err
}

// onlyNormalized reports whether a batch normalisation is all that reads the output of the node
// that is being translated. It applies the convolution itself, with its own factors.
func (t *translator) onlyNormalized() bool {
	y := t.node.outputs[0]
	readers := t.readers[y]
	return y != t.output && len(readers) == 1 && readers[0].op == "BatchNormalization" && readers[0].inputs[0] == y
}

// biased adds the bias of a convolution, if it has one, and if line is set removes the axis that
// was inserted into one-dimensional images.
func (t *translator) biased(y *graph.Node, line bool) ([]value, error) {
	if t.has(2) {
		bias, err := t.x(2)
		if err != nil {
			return nil, err
		}
		shape := graph.ShapeOf(y)
		if shape[2:].Elements() == 1 { // a vector for each image, to which a product of matrices adds the bias itself
			y = t.view(y, shape[:2])
		}
		y = t.view(t.b.Apply(op.BiasAdd{}, y, bias), shape)
	}
	if out := graph.ShapeOf(y); line && t.b.Err() == nil {
		y = t.view(y, []int{out[0], out[1], out[3]})
	}
	return []value{{node: y}}, t.b.Err()
}

// convolved returns a convolution x [B C H W], filter [K C/groups R S] -> [B K P Q].
func (t *translator) convolved(x, filter *graph.Node, w *window, groups int) (*graph.Node, error) {
	c := op.Conv2D{Stride: pair2(w.stride), Padding: pair2(w.before), Dilation: pair2(w.dilation)}
	for i := range c.Trailing {
		c.Trailing[i] = w.after[i] - w.before[i]
	}
	channels, filters := graph.ShapeOf(x)[1], graph.ShapeOf(filter)[0]
	switch {
	case groups < 1 || channels%groups != 0 || filters%groups != 0:
		return nil, errors.Errorf("groups must divide %d channels and %d filters, got %d", channels, filters, groups)
	case groups == 1 && graph.ShapeOf(x)[2:].Elements() == 1 && product(w.kernel) == 1 && !w.padded():
		// One product for the batch, as in squeeze-and-excitation, instead of one for each image.
		images := graph.ShapeOf(x)[0]
		y := t.b.Apply(op.MatMul{TransposeB: true}, t.view(x, []int{images, channels}), t.view(filter, []int{filters, channels}))
		return t.view(y, []int{images, filters, 1, 1}), t.b.Err()
	case groups == 1:
		return t.b.Apply(c, x, filter), t.b.Err()
	}
	g := op.GroupedConv2D{Stride: c.Stride, Padding: c.Padding, Dilation: c.Dilation, Trailing: c.Trailing, Groups: groups}
	return t.b.Apply(g, x, filter), t.b.Err()
}

// convTranspose translates ConvTranspose: the input's elements are moved apart by the stride, with
// zeros in between, and convolved with the filter turned by 180 degrees.
func convTranspose(t *translator) ([]value, error) {
	x, err := t.x(0)
	if err != nil {
		return nil, err
	}
	filter, err := t.operand(1)
	if err != nil {
		return nil, err
	}
	shape, size := []int(graph.ShapeOf(x)), filter.shape()
	if len(shape) != len(size) || len(shape) != 3 && len(shape) != 4 {
		return nil, errors.Errorf("images must have one or two axes, and filters as many: got %v and %v", shape, size)
	}
	w, err := t.unpadded(shape[2:], size[2:])
	if err != nil {
		return nil, err
	}
	groups := t.integer("group", 1)
	if groups < 1 || shape[1]%groups != 0 || size[0] != shape[1] {
		return nil, errors.Errorf("group must divide %d channels, got %d, and the filter must have as many, got %v", shape[1], groups, size)
	}
	extra, given, err := t.integersOf("output_padding", -1)
	if err != nil {
		return nil, err
	}
	if !given {
		extra = make([]int, len(shape)-2)
	}
	if err := t.transposedPadding(w, shape[2:], extra); err != nil {
		return nil, err
	}
	line := len(shape) == 3
	if line {
		x, w, extra = t.view(x, []int{shape[0], shape[1], 1, shape[2]}), w.flat(), []int{0, extra[0]}
		shape = graph.ShapeOf(x)
		if filter, err = t.reshaped(filter, []int{size[0], size[1], 1, size[2]}); err != nil {
			return nil, err
		}
	}
	spread := value{node: x}
	for i := range 2 {
		axis := 2 + i
		if w.stride[i] > 1 {
			extent := (shape[axis]-1)*w.stride[i] + 1
			apart := array.Slice{Axis: axis, Start: 0, Step: w.stride[i], Count: shape[axis]}
			spread = value{node: t.b.Apply(array.Unslice{Slice: apart, Extent: extent}, spread.node)}
		}
		before, after := w.reach(i)-1-w.before[i], w.reach(i)-1-w.after[i]+extra[i]
		if spread, err = t.padded(spread, axis, before, after, "constant", 0); err != nil {
			return nil, err
		}
	}
	turned, err := t.turned(filter, groups)
	if err != nil {
		return nil, err
	}
	plain := &window{kernel: w.kernel, stride: []int{1, 1}, dilation: w.dilation, before: []int{0, 0}, after: []int{0, 0}}
	y, err := t.convolved(spread.node, turned, plain, groups)
	if err != nil {
		return nil, err
	}
	return t.biased(y, line)
}

// turned returns a filter [C K/groups R S] turned by 180 degrees, as [K C/groups R S].
func (t *translator) turned(filter value, groups int) (*graph.Node, error) {
	size := filter.shape()
	within, kernels, height, width := size[0]/groups, size[1], size[2], size[3]
	for _, change := range []func(v value) (value, error){
		func(v value) (value, error) { return t.take(v, 2, span(height-1, -1, height)) },
		func(v value) (value, error) { return t.take(v, 3, span(width-1, -1, width)) },
		func(v value) (value, error) { return t.reshaped(v, []int{groups, within, kernels, height, width}) },
		func(v value) (value, error) { return t.transposed(v, []int{0, 2, 1, 3, 4}) },
		func(v value) (value, error) { return t.reshaped(v, []int{groups * kernels, within, height, width}) },
	} {
		var err error
		if filter, err = change(filter); err != nil {
			return nil, err
		}
	}
	return t.asNode(filter)
}

// transposedPadding sets the padding of a transposed convolution from its output's shape, if that
// is given, or from auto_pad. An output that is larger than without padding ends with zeros.
func (t *translator) transposedPadding(w *window, image, extra []int) error {
	target, given, err := t.integersOf("output_shape", -1)
	if err != nil {
		return err
	}
	mode := t.text("auto_pad", "NOTSET")
	explicit := given
	if !given && (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
		target, given = make([]int, len(image)), true
		for i := range image {
			target[i] = image[i] * w.stride[i]
		}
	}
	if !given {
		return t.padding(w, image)
	}
	if len(target) != len(image) {
		return errors.Errorf("output_shape must have %d extents, got %v", len(image), target)
	}
	for i := range image {
		total := w.stride[i]*(image[i]-1) + extra[i] + w.reach(i) - target[i]
		switch half := total / 2; {
		case total < 0 && !explicit:
			return errors.Errorf("auto_pad %s with filters of %d and a stride of %d has outputs whose size depends on the program: export the model with pads",
				mode, w.reach(i), w.stride[i])
		case total <= -w.stride[i]:
			return errors.Errorf("output_shape must be less than the stride, %d, larger than without padding, got %v", w.stride[i], target)
		case total < 0:
			w.after[i] = total
		case mode == "SAME_UPPER":
			w.before[i], w.after[i] = half, total-half
		default:
			w.before[i], w.after[i] = total-half, half
		}
	}
	return nil
}
