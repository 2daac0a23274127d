package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// batchNormalization translates the inference form, with the running mean and variance as
// constants: y = x s + shift, with s = scale / sqrt(variance + epsilon) and shift = bias - mean s,
// for each channel. Where x is the output of a convolution, the two are folded into its filter and
// its bias, so that images are not touched again.
func batchNormalization(t *translator) ([]value, error) {
	if err := t.needs(5); err != nil {
		return nil, err
	}
	if t.integer("training_mode", 0) != 0 {
		// Weight standardisation: the "batch" is a filter bank of shape [1 K elements].
		if shape, err := t.anyShape(0); err == nil && len(shape) == 3 && shape[0] == 1 && !t.follows(t.inputs[0]) {
			return groupNormalization(t)
		}
		return nil, errors.New("batch normalisation must be in inference form, but training_mode is set: export the model in eval mode")
	}
	inverse, centre, err := t.statistics()
	if err != nil {
		return nil, err
	}
	gamma, err := t.operand(1)
	if err != nil {
		return nil, err
	}
	beta, err := t.operand(2)
	if err != nil {
		return nil, err
	}
	scale, err := t.arithmetic(op.Multiply{}, gamma, inverse)
	if err != nil {
		return nil, err
	}
	below, err := t.arithmetic(op.Multiply{}, gamma, centre)
	if err != nil {
		return nil, err
	}
	shift, err := t.arithmetic(op.Subtract{}, beta, below)
	if err != nil {
		return nil, err
	}
	if c := t.values[t.inputs[0]].conv; c != nil {
		return t.foldedInto(c, scale, shift)
	}
	x, err := t.x(0)
	if err != nil {
		return nil, err
	}
	factors, err := t.asNode(scale)
	if err != nil {
		return nil, err
	}
	offsets, err := t.asNode(shift)
	if err != nil {
		return nil, err
	}
	scaled := t.b.Apply(op.Multiply{}, x, t.perChannel(factors, len(graph.ShapeOf(x))))
	return []value{{node: t.b.Apply(op.BiasAdd{}, scaled, offsets)}}, t.b.Err()
}

// statistics returns 1/sqrt(variance + epsilon), and the mean times that.
func (t *translator) statistics() (inverse, centre value, err error) {
	mean, ok := t.known(3)
	variance, also := t.known(4)
	if !ok || !also {
		return value{}, value{}, errors.New("the running mean and variance must be constants")
	}
	if !slices.Equal(mean.shape, variance.shape) || len(mean.shape) != 1 {
		return value{}, value{}, errors.Errorf("the running mean and variance must be of one length, got %v and %v", mean.shape, variance.shape)
	}
	n, epsilon := len(mean.values), t.float("epsilon", 1e-5)
	of, times := &ndarray{mean.shape, Float32, make([]float64, n)}, &ndarray{mean.shape, Float32, make([]float64, n)}
	for i, v := range variance.values {
		of.values[i] = 1 / math.Sqrt(v+epsilon)
		times.values[i] = mean.values[i] * of.values[i]
	}
	return value{array: of}, value{array: times}, nil
}

// foldedInto applies a convolution again, with a scale and a shift for each filter.
func (t *translator) foldedInto(c *convolution, scale, shift value) ([]value, error) {
	filter, err := t.weightOrNode(c.filter)
	if err != nil {
		return nil, err
	}
	if extents := scale.shape(); len(extents) != 1 || extents[0] != filter.shape()[0] {
		return nil, errors.Errorf("there must be a scale for each of %d filters, got shape %v", filter.shape()[0], extents)
	}
	factors, err := t.reshaped(scale, []int{filter.shape()[0], 1, 1, 1})
	if err != nil {
		return nil, err
	}
	if filter, err = t.arithmetic(op.Multiply{}, filter, factors); err != nil {
		return nil, err
	}
	if c.bias != "" {
		bias, err := t.weightOrNode(c.bias)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(bias.shape(), scale.shape()) {
			return nil, errors.Errorf("there must be a bias for each of %d filters, got shape %v", filter.shape()[0], bias.shape())
		}
		if bias, err = t.arithmetic(op.Multiply{}, bias, scale); err != nil {
			return nil, err
		}
		if shift, err = t.arithmetic(op.Add{}, bias, shift); err != nil {
			return nil, err
		}
	}
	w, err := t.asNode(filter)
	if err != nil {
		return nil, err
	}
	bias, err := t.asNode(shift)
	if err != nil {
		return nil, err
	}
	y, err := t.convolved(c.x, w, c.window, c.groups)
	if err != nil {
		return nil, err
	}
	return []value{{node: t.b.Apply(op.BiasAdd{}, y, bias)}}, t.b.Err()
}

// arithmetic applies an op of foldedArithmetic with broadcasting, at once if both values are known.
func (t *translator) arithmetic(o graph.Op, a, b value) (value, error) {
	if a.array != nil && b.array != nil {
		y, err := broadcast(a.array, b.array, a.array.kind, foldedArithmetic[o])
		return value{array: y}, err
	}
	x, err := t.asNode(a)
	if err != nil {
		return value{}, err
	}
	y, err := t.asNode(b)
	if err != nil {
		return value{}, err
	}
	return value{node: t.b.Apply(o, x, y)}, t.b.Err()
}

// foldedArithmetic has the ops that arithmetic accepts, as functions of numbers.
var foldedArithmetic = map[graph.Op]func(a, b float64) float64{
	op.Add{}:      func(a, b float64) float64 { return a + b },
	op.Subtract{}: func(a, b float64) float64 { return a - b },
	op.Multiply{}: func(a, b float64) float64 { return a * b },
}
