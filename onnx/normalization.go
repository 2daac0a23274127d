package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// groupNormalization translates GroupNormalization and, with a group per channel,
// InstanceNormalization.
func groupNormalization(t *translator) ([]value, error) {
	in, err := t.xs(3)
	if err != nil {
		return nil, err
	}
	shape := graph.ShapeOf(in[0])
	if len(shape) < 3 {
		return nil, errors.Errorf("images must have at least one axis, got %v", shape)
	}
	if err := t.keepsExamplesApart(1, len(shape)); err != nil {
		return nil, err
	}
	groups := t.integer("num_groups", shape[1])
	for i := 1; i < 3; i++ { // before opset 21 there was one scale per group
		if n := graph.ShapeOf(in[i]).Elements(); n != shape[1] && n == groups {
			in[i] = t.b.Apply(array.Repeat{Axis: 0, Times: shape[1] / groups}, in[i])
		}
	}
	flat := t.view(in[0], []int{shape[0], shape[1], 1, product(shape[2:])})
	y := t.b.Apply(op.GroupNorm{Groups: groups, Epsilon: positive(t.float("epsilon", 1e-5))}, flat, in[1], in[2])
	if t.b.Err() != nil {
		return nil, t.b.Err()
	}
	return []value{{node: t.view(y, shape)}}, t.b.Err()
}

// smallest is the smallest normal float32.
const smallest = 0x1p-126

// positive returns a number to add to variances. For 0, which op.GroupNorm does not accept, it is
// so small that it changes only the variance 0.
func positive(epsilon float64) float64 {
	if epsilon == 0 {
		return smallest
	}
	return epsilon
}

// rows returns the first input of a node, the axis at which its rows begin, and their scale.
func (t *translator) rows() (x, scale *graph.Node, axis int, err error) {
	in, err := t.xs(2)
	if err != nil {
		return nil, nil, 0, err
	}
	axes := len(graph.ShapeOf(in[0]))
	if axis, err = t.axis(t.integer("axis", -1), axes, false); err != nil {
		return nil, nil, 0, err
	}
	return in[0], in[1], axis, t.keepsExamplesApart(axis, axes)
}

// layerNormalization standardises rows, which are vectors with a single group. It also returns the
// mean and 1/sqrt(variance + epsilon) if they are read.
func layerNormalization(t *translator) ([]value, error) {
	x, scale, axis, err := t.rows()
	if err != nil {
		return nil, err
	}
	shape := graph.ShapeOf(x)
	var bias *graph.Node
	if t.has(2) {
		if bias, err = t.x(2); err != nil {
			return nil, err
		}
	}
	epsilon := t.float("epsilon", 1e-5)
	y, err := t.normalizedRows(x, axis, epsilon, scale, bias)
	if err != nil {
		return nil, err
	}
	if len(t.outputs) == 1 {
		return []value{{node: y}}, nil
	}
	axes, kept := op.AxesOf(span(axis, 1, len(shape)-axis)...), slices.Clone([]int(shape))
	for i := axis; i < len(kept); i++ {
		kept[i] = 1
	}
	mean := t.view(t.b.Apply(op.Mean{Axes: axes}, x), kept)
	squares := t.b.Apply(op.Squared{}, t.b.Apply(op.Subtract{}, x, mean))
	variance := t.view(t.b.Apply(op.Mean{Axes: axes}, squares), kept)
	inverse, err := reciprocal(t, t.b.Apply(op.Sqrt{}, t.scaled(variance, 1, epsilon)))
	return []value{{node: y}, {node: mean}, {node: inverse}}, err
}

// normalizedRows standardises the rows of x, which begin at an axis. A scale and a bias, which may
// be nil, that broadcast to a row are applied with it, others afterwards.
func (t *translator) normalizedRows(x *graph.Node, axis int, epsilon float64, scale, bias *graph.Node) (*graph.Node, error) {
	shape := graph.ShapeOf(x)
	row := shape[axis:]
	vectors := []*graph.Node{scale, bias}
	var after [2]*graph.Node
	for i, v := range vectors {
		if own := graph.ShapeOf(v); v != nil && own[:max(0, len(own)-len(row))].Elements() == 1 {
			wide, err := t.expanded(v, row)
			if err != nil {
				return nil, err
			}
			vectors[i] = t.view(wide, []int{row.Elements()})
			continue
		}
		neutral, err := t.constant(&ndarray{[]int{row.Elements()}, Float32, slices.Repeat([]float64{float64(1 - i)}, row.Elements())})
		if err != nil {
			return nil, err
		}
		vectors[i], after[i] = neutral, v
	}
	rows := t.view(x, []int{shape[:axis].Elements(), row.Elements(), 1, 1})
	y := t.view(t.b.Apply(op.GroupNorm{Groups: 1, Epsilon: positive(epsilon)}, rows, vectors[0], vectors[1]), shape)
	for i, o := range []graph.Op{op.Multiply{}, op.Add{}} {
		if after[i] != nil {
			y = t.b.Apply(o, y, after[i])
		}
	}
	return y, t.b.Err()
}

// rmsNormalization divides rows by their root mean square, and applies a scale.
func rmsNormalization(t *translator) ([]value, error) {
	x, scale, axis, err := t.rows()
	if err != nil {
		return nil, err
	}
	shape := graph.ShapeOf(x)
	rows := t.view(x, []int{shape[:axis].Elements(), shape[axis:].Elements()})
	mean := t.b.Apply(op.Mean{Axes: op.AxesOf(1)}, t.b.Apply(op.Squared{}, rows))
	root := t.view(t.b.Apply(op.Sqrt{}, t.scaled(mean, 1, t.float("epsilon", 1e-5))), []int{shape[:axis].Elements(), 1})
	y := t.view(t.b.Apply(op.Divide{}, rows, root), shape)
	return []value{{node: t.b.Apply(op.Multiply{}, y, scale)}}, t.b.Err()
}

// lpNormalization divides by the norm along an axis. Vectors of zeros remain zeros.
func lpNormalization(t *translator) ([]value, error) {
	x, err := t.x(0)
	if err != nil {
		return nil, err
	}
	shape := []int(graph.ShapeOf(x))
	axis, err := t.axis(t.integer("axis", -1), len(shape), false)
	if err != nil {
		return nil, err
	}
	if err := t.keepsExamplesApart(axis, axis+1); err != nil {
		return nil, err
	}
	over := make([]bool, len(shape))
	over[axis] = true
	norm, err := t.norm(x, over, t.integer("p", 2))
	if err != nil {
		return nil, err
	}
	kept := slices.Clone(shape)
	kept[axis] = 1
	divisor := t.clipped(t.view(norm, kept), smallest, math.Inf(1))
	return []value{{node: t.b.Apply(op.Divide{}, x, divisor)}}, t.b.Err()
}

// norm returns (sum |x|^p)^(1/p) over the marked axes.
func (t *translator) norm(x *graph.Node, over []bool, p int) (*graph.Node, error) {
	powers, err := t.powers(x, p)
	if err != nil {
		return nil, err
	}
	sum, err := total(t, powers, over)
	if err != nil {
		return nil, err
	}
	return t.root(sum, p)
}

// powers returns |x|^p.
func (t *translator) powers(x *graph.Node, p int) (*graph.Node, error) {
	switch {
	case p < 1:
		return nil, errors.Errorf("p must be at least 1, got %d", p)
	case p == 1:
		return t.b.Apply(op.Abs{}, x), nil
	case p == 2:
		return t.b.Apply(op.Squared{}, x), nil
	}
	exponent, err := t.scalar(float64(p), len(graph.ShapeOf(x)))
	if err != nil {
		return nil, err
	}
	return t.b.Apply(op.Power{}, t.b.Apply(op.Abs{}, x), exponent), nil
}

// root returns x^(1/p).
func (t *translator) root(x *graph.Node, p int) (*graph.Node, error) {
	switch p {
	case 1:
		return x, t.b.Err()
	case 2:
		return t.b.Apply(op.Sqrt{}, x), t.b.Err()
	}
	exponent, err := t.scalar(1/float64(p), len(graph.ShapeOf(x)))
	if err != nil {
		return nil, err
	}
	return t.b.Apply(op.Power{}, x, exponent), t.b.Err()
}

// lrn divides by (bias + alpha/size sum of x^2 over size neighbouring channels)^beta (Krizhevsky,
// Sutskever and Hinton, ImageNet classification with deep convolutional neural networks, 2012).
func lrn(t *translator, x *graph.Node) *graph.Node {
	shape, size := graph.ShapeOf(x), t.integer("size", 0)
	if len(shape) < 2 || size < 1 {
		t.b.Fail(errors.Errorf("size must be at least 1 and there must be channels, got %d and shape %v", size, shape))
		return nil
	}
	if err := t.keepsExamplesApart(1, len(shape)); err != nil {
		t.b.Fail(err)
		return nil
	}
	squares := t.view(t.b.Apply(op.Squared{}, x), []int{shape[0], 1, shape[1], product(shape[2:])})
	around, err := t.filled(value{node: squares}, 2, (size-1)/2, size-1-(size-1)/2, 0)
	if err != nil {
		t.b.Fail(err)
		return nil
	}
	mean := t.b.Apply(op.AveragePool2D{Window: [2]int{size, 1}, Stride: op.Square(1)}, around.node)
	if t.b.Err() != nil {
		return nil
	}
	base := t.scaled(t.view(mean, shape), t.float("alpha", 1e-4), t.float("bias", 1))
	return t.b.Apply(op.Multiply{}, x, t.b.Apply(op.Exp{}, t.scaled(t.b.Apply(op.Log{}, base), -t.float("beta", 0.75), 0)))
}
