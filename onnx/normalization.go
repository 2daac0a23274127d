package onnx

import (
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
	y := t.b.Apply(op.GroupNorm{Groups: groups, Epsilon: t.float("epsilon", 1e-5)}, flat, in[1], in[2])
	if t.b.Err() != nil {
		return nil, t.b.Err()
	}
	return []value{{node: t.view(y, shape)}}, t.b.Err()
}

// layerNormalization standardises rows, which are vectors with a single group. It also returns the
// mean and 1/sqrt(variance + epsilon) if they are read.
func layerNormalization(t *translator) ([]value, error) {
	in, err := t.xs(2)
	if err != nil {
		return nil, err
	}
	x, scale := in[0], in[1]
	shape := graph.ShapeOf(x)
	axis, err := t.axis(t.integer("axis", -1), len(shape), false)
	if err != nil {
		return nil, err
	}
	if err := t.keepsExamplesApart(axis, len(shape)); err != nil {
		return nil, err
	}
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
	y := t.view(t.b.Apply(op.GroupNorm{Groups: 1, Epsilon: epsilon}, rows, vectors[0], vectors[1]), shape)
	for i, o := range []graph.Op{op.Multiply{}, op.Add{}} {
		if after[i] != nil {
			y = t.b.Apply(o, y, after[i])
		}
	}
	return y, t.b.Err()
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
