package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// channels adds a parameter [C] in the shape in which it is broadcast over x.
func (e *Emission) channels(name string, p, x emitted) (string, error) {
	c := p.shape.Elements()
	if len(x.shape) == 3 {
		return e.parameter(name, p, c, 1)
	}
	if len(x.shape) != 4 {
		if e.samples > 1 {
			return e.parameter(name, p, e.samples, 1, c)
		}
		return e.parameter(name, p, c)
	}
	return e.parameter(name, p, e.samples*c, 1, 1)
}

// perChannel adds an op of x and of a parameter with a number for each channel.
func (e *Emission) perChannel(name string, x, p emitted) (emitted, error) {
	if axes := len(x.shape); axes < 2 || axes > 4 || axes == 3 && e.samples > 1 {
		return emitted{}, e.untranslated("an op of values of shape %v and of a number for each channel", x.shape)
	}
	if len(x.shape) == 4 && x.shape[1] > 1 { // one channel is broadcast over the parameter's
		x = e.stack(x)
	}
	constant, err := e.channels(name, p, x)
	return emitted{name: e.w.Node(name, nil, x.name, constant), stacked: true}, err
}

func (e *Emission) biasAdd(x, bias emitted) (emitted, error) {
	if x.unbiased == nil {
		return e.perChannel("Add", x, bias)
	}
	if bias.values == nil {
		return emitted{}, errComputed
	}
	name, err := x.unbiased(bias)
	return emitted{name: name, batch: x.batch, stacked: true}, err
}

// convolution adds a convolution of groups.
func (e *Emission) convolution(x, w emitted, groups int, o op.Conv2D) (emitted, error) {
	if w.values == nil {
		return emitted{}, errComputed
	}
	k, c, r, s := w.shape[0], w.shape[1], w.shape[2], w.shape[3]
	attributes := Attributes{
		"kernel_shape": []int{r, s}, "strides": o.Stride[:], "dilations": o.Dilation[:],
		"pads": []int{o.Padding[0], o.Padding[1], o.Padding[0] + o.Trailing[0], o.Padding[1] + o.Trailing[1]},
	}
	separate := e.several(x) && groups == 1 && (k%groupedChannels != 0 || c%groupedChannels != 0)
	switch {
	case separate:
	case e.several(x):
		groups *= e.samples
	case groups > 1 && e.samples > 1:
		x = e.stack(x)
		groups *= e.samples
	}
	attributes["group"] = groups
	conv := func(x string, w, bias emitted) (string, error) {
		filters, err := e.parameter("weight", w, len(w.values)*k, c, r, s)
		if err != nil {
			return "", err
		}
		inputs := []string{x, filters}
		if bias.values != nil {
			name, err := e.parameter("bias", bias, len(bias.values)*k)
			if err != nil {
				return "", err
			}
			inputs = append(inputs, name)
		}
		return e.w.Node("Conv", attributes, inputs...), nil
	}
	add := e.within(func(bias emitted) (string, error) {
		if !separate {
			return conv(x.name, w, bias)
		}
		sizes := e.w.Integers("channels", slices.Repeat([]int{c}, e.samples)...)
		each := e.w.NodeOf("Split", e.samples, Attributes{"axis": 1}, x.name, sizes)
		for i, name := range each {
			var err error
			if each[i], err = conv(name, w.sample(i), bias.sample(i)); err != nil {
				return "", err
			}
		}
		return e.w.Node("Concat", Attributes{"axis": 1}, each...), nil
	})
	return emitted{stacked: true, unbiased: add}, nil
}

// A convolution of several samples has a group for each sample if groupedChannels divides its
// numbers of channels. ONNX Runtime's fast kernels process blocks of 16 channels of one group.
// Without them, separate convolutions are faster: half of the time for 30 times 10 to 20 channels.
const groupedChannels = 16

// sample returns a parameter under sample i. v may have no values.
func (v emitted) sample(i int) emitted {
	if v.values != nil {
		v.values = v.values[i : i+1]
	}
	return v
}

// within returns a function that calls add later, but in the scope of the present layer.
func (e *Emission) within(add func(bias emitted) (string, error)) func(bias emitted) (string, error) {
	layer := e.layer
	return func(bias emitted) (string, error) {
		before := e.w.scope
		e.w.Scope(joinScope(e.scope, layer))
		defer e.w.Scope(before)
		return add(bias)
	}
}

// product adds x w or, if o transposes it, x w'.
func (e *Emission) product(o op.MatMul, x, w emitted) (emitted, error) {
	if o.TransposeA || len(x.shape) != 2 || len(w.shape) != 2 {
		return emitted{}, errors.Errorf("a product of shapes %v and %v has no translation to ONNX", x.shape, w.shape)
	}
	if w.values == nil {
		return emitted{}, errComputed
	}
	inputs, outputs := w.shape[0], w.shape[1]
	if e.samples == 1 {
		weight, err := e.parameter("weight", w, w.shape...)
		transposed := 0
		if o.TransposeB {
			transposed = 1
		}
		add := e.within(func(bias emitted) (string, error) {
			all := []string{x.name, weight}
			if bias.values != nil {
				name, err := e.parameter("bias", bias, bias.shape.Elements())
				if err != nil {
					return "", err
				}
				all = append(all, name)
			}
			return e.w.Node("Gemm", Attributes{"transB": transposed}, all...), nil
		})
		return emitted{stacked: true, unbiased: add}, err
	}
	if o.TransposeB {
		inputs, outputs = outputs, inputs
		transposed := w
		transposed.values = nil
		for _, values := range w.values {
			transposed.values = append(transposed.values, tensor.Transposed(values, outputs, inputs))
		}
		w = transposed
	}
	weight, err := e.parameter("weight", w, e.samples, inputs, outputs)
	add := e.within(func(bias emitted) (string, error) {
		y := e.w.Node("MatMul", nil, x.name, weight)
		if bias.values == nil {
			return y, nil
		}
		name, err := e.parameter("bias", bias, e.samples, 1, bias.shape.Elements())
		return e.w.Node("Add", nil, y, name), err
	})
	return emitted{stacked: true, unbiased: add}, err
}

// responseNorm divides each channel by its root mean square, and scales and shifts it.
func (e *Emission) responseNorm(o op.FilterResponseNorm, in []emitted) (emitted, error) {
	x := in[0]
	positions := x.shape[2] * x.shape[3]
	if x.shape[1] > 1 {
		x = e.stack(x)
	}
	// gamma / sqrt(S/n + epsilon) = gamma sqrt(n) / sqrt(S + n epsilon), for a sum S of n squares.
	gamma := in[1]
	gamma.values = nil
	for _, values := range in[1].values {
		scaled := make([]float32, len(values))
		for i, v := range values {
			scaled[i] = float32(float64(v) * math.Sqrt(float64(positions)))
		}
		gamma.values = append(gamma.values, scaled)
	}
	scale, err := e.channels("scale", gamma, x)
	if err != nil {
		return emitted{}, err
	}
	sum := e.w.Node("ReduceSumSquare", Attributes{"axes": []int{2, 3}, "keepdims": 1}, x.name)
	root := e.w.Node("Sqrt", nil, e.w.Node("Add", nil, sum, e.w.Float("epsilon", o.Epsilon*float64(positions))))
	y := emitted{name: e.w.Node("Mul", nil, x.name, e.w.Node("Div", nil, scale, root)), shape: x.shape, stacked: true}
	return e.perChannel("Add", y, in[2])
}

// groupNorm standardises groups of channels, and scales and shifts each channel.
func (e *Emission) groupNorm(o op.GroupNorm, in []emitted) (emitted, error) {
	x := in[0]
	groups, extents := o.Groups, x.shape[1:]
	if e.several(x) {
		groups *= e.samples
		extents = tensor.Shape{e.samples * x.shape[1], x.shape[2], x.shape[3]}
	}
	ones := slices.Repeat([]float32{1}, groups)
	rows := e.w.Node("Reshape", nil, x.name, e.w.Integers("groups", -1, groups, extents.Elements()/groups))
	// Runtimes compute the mean in float32, which is not enough where it is much larger than the
	// deviations from it, as in images of little contrast: the deviations from a rough mean are
	// standardised instead.
	rows = e.w.Node("Sub", nil, rows, e.w.Node("ReduceMean", Attributes{"axes": []int{2}, "keepdims": 1}, rows))
	rows = e.w.Node("InstanceNormalization", Attributes{"epsilon": o.Epsilon}, rows, e.w.Floats("ones", ones, groups),
		e.w.Floats("zeros", make([]float32, groups), groups))
	y := e.with(x, e.w.Node("Reshape", nil, rows, e.w.Integers("shape", append([]int{-1}, extents...)...)))
	y.shape = x.shape
	y, err := e.perChannel("Mul", y, in[1])
	if err != nil {
		return y, err
	}
	y.shape = x.shape
	return e.perChannel("Add", y, in[2])
}

// poolAttributes returns the attributes of a pooling op.
func poolAttributes(size, stride, padding, trailing [2]int) Attributes {
	return Attributes{
		"kernel_shape": size[:], "strides": stride[:],
		"pads": []int{padding[0], padding[1], padding[0] + trailing[0], padding[1] + trailing[1]},
	}
}
