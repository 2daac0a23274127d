package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// window has the attributes that convolutions and pooling share, an entry per spatial axis.
type window struct {
	kernel, stride, dilation []int
	before, after            []int // padding
}

// windowOf reads the attributes; kernel is the filter's size if the attribute is absent.
func (t *translator) windowOf(image, kernel []int) (*window, error) {
	axes := len(image)
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

// reach returns how many elements of an axis a window spans.
func (w *window) reach(axis int) int { return (w.kernel[axis]-1)*w.dilation[axis] + 1 }

// symmetric reports whether both sides have the same padding.
func (w *window) symmetric() bool { return slices.Equal(w.before, w.after) }

// flat inserts an axis of extent 1 into one-dimensional windows.
func (w *window) flat() *window {
	insert := func(v []int, first int) []int { return append([]int{first}, v...) }
	return &window{insert(w.kernel, 1), insert(w.stride, 1), insert(w.dilation, 1), insert(w.before, 0), insert(w.after, 0)}
}

func pair2(v []int) [2]int { return [2]int{v[0], v[1]} }

// convolution is a convolution of images with two axes as it was applied.
type convolution struct {
	x            *graph.Node
	window       *window // whose padding includes a margin
	groups       int
	filter, bias string // names of values; no bias is ""
}

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
	filter, err := t.x(1)
	if err != nil {
		return nil, err
	}
	shape, size := images.shape(), graph.ShapeOf(filter)
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
	if len(shape) == 3 {
		x, filter, w = t.view(x, []int{shape[0], shape[1], 1, shape[2]}), t.view(filter, []int{size[0], size[1], 1, size[2]}), w.flat()
		y, err := t.convolved(x, filter, w, groups)
		if err != nil {
			return nil, err
		}
		return t.biased(y, true)
	}
	c := &convolution{x: x, window: w, groups: groups, filter: t.inputs[1]}
	if t.has(2) {
		c.bias = t.inputs[2]
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

// biased adds the bias of a convolution, if it has one, and if line is set removes the axis that
// was inserted into one-dimensional images.
func (t *translator) biased(y *graph.Node, line bool) ([]value, error) {
	if t.has(2) {
		bias, err := t.x(2)
		if err != nil {
			return nil, err
		}
		y = t.b.Apply(op.BiasAdd{}, y, bias)
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
	w, err := t.windowOf(shape[2:], size[2:])
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
		shape, size = graph.ShapeOf(x), []int{size[0], size[1], 1, size[2]}
		if filter, err = t.reshaped(filter, size); err != nil {
			return nil, err
		}
	}
	spread := value{node: x}
	turned := filter
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
		if turned, err = t.take(turned, axis, span(size[axis]-1, -1, size[axis])); err != nil {
			return nil, err
		}
	}
	// [C K/groups R S] becomes [K C/groups R S], within each group.
	within, kernels := shape[1]/groups, size[1]
	for _, change := range []func(v value) (value, error){
		func(v value) (value, error) { return t.reshaped(v, []int{groups, within, kernels, size[2], size[3]}) },
		func(v value) (value, error) { return t.transposed(v, []int{0, 2, 1, 3, 4}) },
		func(v value) (value, error) { return t.reshaped(v, []int{groups * kernels, within, size[2], size[3]}) },
	} {
		if turned, err = change(turned); err != nil {
			return nil, err
		}
	}
	if turned.node == nil {
		if turned.node, err = t.constant(turned.array); err != nil {
			return nil, err
		}
	}
	plain := &window{kernel: w.kernel, stride: []int{1, 1}, dilation: w.dilation, before: []int{0, 0}, after: []int{0, 0}}
	y, err := t.convolved(spread.node, turned.node, plain, groups)
	if err != nil {
		return nil, err
	}
	return t.biased(y, line)
}

// transposedPadding sets the padding of a transposed convolution from its output's shape, if that
// is given, or from auto_pad.
func (t *translator) transposedPadding(w *window, image, extra []int) error {
	target, given, err := t.integersOf("output_shape", -1)
	if err != nil {
		return err
	}
	mode := t.text("auto_pad", "NOTSET")
	if !given && (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
		target, given = make([]int, len(image)), true
		for i := range image {
			target[i] = image[i] * w.stride[i]
		}
	}
	if !given {
		return nil
	}
	if len(target) != len(image) {
		return errors.Errorf("output_shape must have %d extents, got %v", len(image), target)
	}
	for i := range image {
		total := w.stride[i]*(image[i]-1) + extra[i] + w.reach(i) - target[i]
		half := total >> 1 // rounded down, also where the output is larger and total negative
		w.before[i], w.after[i] = total-half, half
		if mode == "SAME_UPPER" {
			w.before[i], w.after[i] = half, total-half
		}
	}
	return nil
}

// pooling translates MaxPool and AveragePool over any number of axes.
func pooling(average bool) translation {
	return func(t *translator) ([]value, error) {
		x, err := t.x(0)
		if err != nil {
			return nil, err
		}
		if len(t.outputs) > 1 && t.outputs[1] != "" {
			return nil, errors.New("the places of the maxima, output 1, are not supported")
		}
		shape := graph.ShapeOf(x)
		if len(shape) < 3 {
			return nil, errors.Errorf("images must have at least one axis, got %v", shape)
		}
		w, err := t.windowOf(shape[2:], nil)
		if err != nil {
			return nil, err
		}
		p := &pool{translator: t, window: w, average: average, countPadding: t.integer("count_include_pad", 0) != 0}
		p.open(shape[2:], t.integer("ceil_mode", 0) != 0)
		y, err := p.apply(x)
		return []value{{node: y}}, err
	}
}

// pool is a pooling with the size of its output.
type pool struct {
	*translator
	*window
	average, countPadding bool
	out                   []int
	beyond                []int // elements after the padding that the last windows reach, by rounding up
}

// open computes the size of the output. With ceil, a window that reaches beyond the padding counts,
// unless it would begin there.
func (p *pool) open(image []int, ceil bool) {
	for i, extent := range image {
		room := extent + p.before[i] + p.after[i] - p.reach(i)
		n := room/p.stride[i] + 1
		if room < 0 {
			n = 0
		}
		if ceil && room%p.stride[i] != 0 && n*p.stride[i] < extent+p.before[i] {
			n++
		}
		p.out = append(p.out, n)
		p.beyond = append(p.beyond, max(0, (n-1)*p.stride[i]+p.reach(i)-(extent+p.before[i]+p.after[i])))
	}
}

func (p *pool) apply(x *graph.Node) (*graph.Node, error) {
	shape := graph.ShapeOf(x)
	if slices.Min(p.out) < 1 {
		return nil, errors.Errorf("windows of %v do not fit into images of %v", p.kernel, shape[2:])
	}
	plain := p.symmetric() && slices.Max(p.beyond) == 0 && slices.Max(p.dilation) == 1
	for i := range p.before {
		plain = plain && p.before[i] < p.kernel[i] // as the ops require
	}
	padded := slices.Max(p.before) > 0
	if plain && len(shape) == 4 && !(p.average && p.countPadding && padded) {
		if p.average {
			return p.b.Apply(op.AveragePool2D{Window: pair2(p.kernel), Stride: pair2(p.stride), Padding: pair2(p.before)}, x), p.b.Err()
		}
		return p.b.Apply(op.MaxPool2D{Window: pair2(p.kernel), Stride: pair2(p.stride), Padding: pair2(p.before)}, x), p.b.Err()
	}
	return p.byTaps(x)
}

// byTaps combines the taps of the windows one by one: the general case, for unequal padding,
// windows that reach beyond it, dilations, and any number of axes.
func (p *pool) byTaps(x *graph.Node) (*graph.Node, error) {
	shape := graph.ShapeOf(x)
	fill := 0.0
	if !p.average {
		fill = -math.MaxFloat32
	}
	y := value{node: x}
	for i := range p.before {
		var err error
		if after := p.after[i] + p.beyond[i]; p.before[i]+after > 0 {
			if y, err = p.filled(y, 2+i, p.before[i], after, fill); err != nil {
				return nil, err
			}
		}
	}
	// Axis by axis: maxima and sums of windows are those of their lines'.
	for i := range p.before {
		var combined *graph.Node
		for tap := range p.kernel[i] {
			at := span(tap*p.dilation[i], p.stride[i], p.out[i])
			part, err := p.take(y, 2+i, at)
			if err != nil {
				return nil, err
			}
			switch {
			case combined == nil:
				combined = part.node
			case p.average:
				combined = p.b.Apply(op.Add{}, combined, part.node)
			default:
				combined = p.b.Apply(array.Extremum{}, combined, part.node)
			}
		}
		y = value{node: combined}
	}
	if !p.average {
		return y.node, p.b.Err()
	}
	counts, err := p.constant(p.counts(shape[2:]))
	if err != nil {
		return nil, err
	}
	return p.b.Apply(op.Divide{}, y.node, counts), p.b.Err()
}

// counts returns how many elements each window averages over, as [1 1 P Q ...].
func (p *pool) counts(image []int) *ndarray {
	shape := append([]int{1, 1}, p.out...)
	counts := &ndarray{shape, Float32, slices.Repeat([]float64{1}, product(shape))}
	index := make([]int, len(shape))
	for n := range counts.values {
		for i, extent := range image {
			low, high := 0, extent
			if p.countPadding {
				low, high = -p.before[i], extent+p.after[i]
			}
			inside := 0
			for tap := range p.kernel[i] {
				if at := index[2+i]*p.stride[i] - p.before[i] + tap*p.dilation[i]; at >= low && at < high {
					inside++
				}
			}
			counts.values[n] *= float64(inside)
		}
		advance(index, shape)
	}
	return counts
}

// global pools whole images and keeps their axes with extent 1.
func global(average bool) translation {
	return func(t *translator) ([]value, error) {
		x, err := t.x(0)
		if err != nil {
			return nil, err
		}
		shape := graph.ShapeOf(x)
		if len(shape) < 3 {
			return nil, errors.Errorf("images must have at least one axis, got %v", shape)
		}
		rows := t.view(x, []int{shape[0] * shape[1], product(shape[2:])})
		var y *graph.Node
		if average {
			y = t.b.Apply(op.Mean{Axes: op.AxesOf(1)}, rows)
		} else {
			y = t.b.Apply(array.RowMaximum{}, rows)
		}
		kept := append([]int{shape[0], shape[1]}, slices.Repeat([]int{1}, len(shape)-2)...)
		return []value{{node: t.view(y, kept)}}, t.b.Err()
	}
}
