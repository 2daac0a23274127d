package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

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
		y, err := t.pooled(x, &pool{average: average, countPadding: t.integer("count_include_pad", 0) != 0})
		return []value{{node: y}}, err
	}
}

// lpPool translates LpPool: (sum |x|^p)^(1/p) of each window.
func lpPool(t *translator) ([]value, error) {
	x, err := t.x(0)
	if err != nil {
		return nil, err
	}
	p := t.integer("p", 2)
	powers, err := t.powers(x, p)
	if err != nil {
		return nil, err
	}
	sums, err := t.pooled(powers, &pool{sum: true})
	if err != nil {
		return nil, err
	}
	y, err := t.root(sums, p)
	return []value{{node: y}}, err
}

// pooled pools x by a window that the node's attributes describe.
func (t *translator) pooled(x *graph.Node, p *pool) (*graph.Node, error) {
	shape := graph.ShapeOf(x)
	if len(shape) < 3 {
		return nil, errors.Errorf("images must have at least one axis, got %v", shape)
	}
	w, err := t.windowOf(shape[2:], nil)
	if err != nil {
		return nil, err
	}
	p.translator, p.window = t, w
	p.open(shape[2:], t.integer("ceil_mode", 0) != 0)
	return p.apply(x)
}

// pool is a pooling with the size of its output.
type pool struct {
	*translator
	*window
	average, countPadding bool
	sum                   bool // elements are added
	out                   []int
	beyond                []int // elements that the last window reaches beyond the padding, if the size was rounded up
}

// open computes the size of the output. With ceil, a window that reaches beyond the padding
// counts, unless it begins there.
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
	plain := len(shape) == 4 && !p.sum && slices.Max(p.dilation) == 1
	for i, extent := range shape[2:] { // as the ops require: each window has an element
		plain = plain && p.before[i] < p.kernel[i] && (p.out[i]-1)*p.stride[i]-p.before[i] < extent
	}
	if !plain {
		return p.byTaps(x)
	}
	average := op.AveragePool2D{Window: pair2(p.kernel), Stride: pair2(p.stride), Padding: pair2(p.before)}
	for i := range average.Trailing {
		average.Trailing[i] = p.after[i] + p.beyond[i] - p.before[i]
	}
	if !p.average {
		return p.b.Apply(op.MaxPool2D{Window: average.Window, Stride: average.Stride, Padding: average.Padding, Trailing: average.Trailing}, x), p.b.Err()
	}
	y := p.b.Apply(average, x)
	if !p.countPadding || !p.window.padded() {
		return y, p.b.Err()
	}
	// The op does not count padding: the mean over more elements is a fraction of its mean.
	fractions := p.counts(shape[2:], false)
	for i, all := range p.counts(shape[2:], true).values {
		fractions.values[i] /= all
	}
	factors, err := p.constant(fractions)
	if err != nil {
		return nil, err
	}
	return p.b.Apply(op.Multiply{}, y, factors), p.b.Err()
}

// byTaps combines the taps of the windows one by one: the general case, for dilations, sums, wide
// padding, and any number of axes.
func (p *pool) byTaps(x *graph.Node) (*graph.Node, error) {
	shape := graph.ShapeOf(x)
	fill := 0.0
	if !p.average && !p.sum {
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
	// Axis by axis: the maximum of a window is the maximum of its lines' maxima, and so for sums.
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
			case p.average || p.sum:
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
	counts, err := p.constant(p.counts(shape[2:], p.countPadding))
	if err != nil {
		return nil, err
	}
	return p.b.Apply(op.Divide{}, y.node, counts), p.b.Err()
}

// counts returns how many elements each window has, with or without padding, as [1 1 P Q ...].
func (p *pool) counts(image []int, padding bool) *ndarray {
	shape := append([]int{1, 1}, p.out...)
	counts := &ndarray{shape, Float32, slices.Repeat([]float64{1}, product(shape))}
	index := make([]int, len(shape))
	for n := range counts.values {
		for i, extent := range image {
			low, high := 0, extent
			if padding {
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

// global pools whole images by the mean or the maximum.
func global(average bool) translation {
	return globally(func(t *translator, rows *graph.Node) (*graph.Node, error) {
		if average {
			return t.b.Apply(op.Mean{Axes: op.AxesOf(1)}, rows), nil
		}
		return t.b.Apply(array.RowMaximum{}, rows), nil
	})
}

// globalLpPool translates GlobalLpPool: (sum |x|^p)^(1/p) of each channel.
func globalLpPool(t *translator) ([]value, error) {
	return globally(func(t *translator, rows *graph.Node) (*graph.Node, error) {
		return t.norm(rows, []bool{false, true}, t.integer("p", 2))
	})(t)
}

// globally returns the translation that combines each row, which is a channel of an image, and
// keeps the images' axes with extent 1.
func globally(combine func(t *translator, rows *graph.Node) (*graph.Node, error)) translation {
	return func(t *translator) ([]value, error) {
		x, err := t.x(0)
		if err != nil {
			return nil, err
		}
		shape := graph.ShapeOf(x)
		if len(shape) < 3 {
			return nil, errors.Errorf("images must have at least one axis, got %v", shape)
		}
		y, err := combine(t, t.view(x, []int{shape[0] * shape[1], product(shape[2:])}))
		if err != nil {
			return nil, err
		}
		kept := append([]int{shape[0], shape[1]}, slices.Repeat([]int{1}, len(shape)-2)...)
		return []value{{node: t.view(y, kept)}}, t.b.Err()
	}
}
