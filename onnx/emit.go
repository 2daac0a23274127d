package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// Emission is a network in a Writer's model, with several samples of its weights at once.
//
// With one sample, values have the shapes that they have in the graph, with an open batch. With n
// samples, those that depend on the weights are stacked: activations [B C H W] become [B nC H W],
// so that convolutions have n groups or are n convolutions of some channels each, and [B D] become
// [n B D], so that matrix products are batched. Values that do not depend on the weights are
// computed once.
type Emission struct {
	w       *Writer
	samples int
	values  map[*graph.Node]emitted
	users   map[*graph.Node]int
	scope   string
	layer   string // being emitted
}

// emitted describes a node of the graph in the model.
type emitted struct {
	name    string
	shape   tensor.Shape // in the graph: of one sample, for a batch of 1
	batch   int          // axis of which the batch is the first factor; below 0 if there is none
	stacked bool
	// values are those of a parameter, for each sample. The model does not contain the parameter
	// itself, only constants in the layouts that its users need.
	values [][]float32
	known  bool // values are the same in all samples
	// unbiased adds a convolution or product, which waits for a bias that may follow. A bias
	// without values stands for none.
	unbiased func(bias emitted) (string, error)
}

// Emit adds the network of graph b to the model. The graph's batch must be 1. value is the name of
// input in the model, and samples has the values of b.Parameters() in each sample. Names in the
// model begin with scope. Emit returns an UnwritableError if an op has no translation.
func (w *Writer) Emit(b *graph.Builder, input *graph.Node, value string, samples [][][]float32, scope string) (*Emission, error) {
	e := &Emission{w: w, samples: len(samples), values: map[*graph.Node]emitted{}, users: map[*graph.Node]int{}, scope: scope}
	e.values[input] = emitted{name: value, shape: graph.ShapeOf(input)}
	for i, p := range b.Parameters() {
		v := emitted{shape: graph.ShapeOf(p), batch: -1, stacked: true}
		for n, sample := range samples {
			if len(sample) != len(b.Parameters()) || len(sample[i]) != v.shape.Elements() {
				return nil, errors.Errorf("onnx: sample %d must have the %d parameters of the network, and for number %d the values of shape %v",
					n, len(b.Parameters()), i, v.shape)
			}
			v.values = append(v.values, sample[i])
		}
		e.values[p] = v
	}
	defer w.Scope(w.scope)
	all := b.Applications()
	for _, a := range all {
		for _, in := range a.Inputs {
			e.users[in]++
			if _, known := e.values[in]; !known {
				e.constant(in, b.TableValues(in))
			}
		}
	}
	for _, a := range all {
		e.layer = a.Scope
		w.Scope(joinScope(scope, a.Scope))
		v, err := e.emit(a)
		if err != nil {
			return nil, &UnwritableError{errors.WithMessagef(err, "onnx: layer %s: %s", a.Scope, a.Op.Name())}
		}
		v.shape = graph.ShapeOf(a.Output)
		e.values[a.Output] = v
	}
	return e, nil
}

// constant records the known values of a node, which are the same in all samples. It does nothing
// if values is nil.
func (e *Emission) constant(n *graph.Node, values []float64) {
	if values == nil {
		return
	}
	rounded := make([]float32, len(values))
	for i, v := range values {
		rounded[i] = float32(v)
	}
	e.values[n] = emitted{shape: graph.ShapeOf(n), batch: -1, stacked: true, values: slices.Repeat([][]float32{rounded}, e.samples), known: true}
}

func joinScope(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + "/" + inner
}

// Value returns the model's name for a node of the graph, and whether it is stacked.
func (e *Emission) Value(n *graph.Node) (name string, stacked bool, err error) {
	v, err := e.of(n)
	if err == nil && v.name == "" {
		err = errors.New("onnx: a parameter is not a value of the model")
	}
	return v.name, v.stacked && e.samples > 1, err
}

// of returns a node's value. If the node waits for a bias, it is added without one.
func (e *Emission) of(n *graph.Node) (emitted, error) {
	v, ok := e.values[n]
	if !ok {
		return v, errors.New("an input of the graph other than its images has no translation to ONNX")
	}
	if v.unbiased == nil {
		return v, nil
	}
	name, err := v.unbiased(emitted{})
	if err != nil {
		return v, err
	}
	v.name, v.unbiased = name, nil
	e.values[n] = v
	return v, nil
}

// emit adds an op to the model.
func (e *Emission) emit(a graph.Application) (emitted, error) {
	var in []emitted
	for i, n := range a.Inputs {
		if v := e.values[n]; i == 0 && v.unbiased != nil && a.Op == (op.BiasAdd{}) && e.users[n] == 1 {
			in = append(in, v)
			continue
		}
		v, err := e.of(n)
		if err != nil {
			return v, err
		}
		in = append(in, v)
	}
	if len(in) > 0 && !slices.ContainsFunc(in, func(v emitted) bool { return v.values == nil }) {
		return e.computed(a.Op, in)
	}
	switch o := a.Op.(type) {
	case op.View:
		return e.view(o, in[0], graph.ShapeOf(a.Output))
	case op.Mean:
		return e.reduction("ReduceMean", o.Axes, in[0])
	case op.Sum:
		return e.reduction("ReduceSum", o.Axes, in[0])
	case op.Add:
		return e.both("Add", in[0], in[1])
	case op.Subtract:
		return e.both("Sub", in[0], in[1])
	case op.Multiply:
		return e.both("Mul", in[0], in[1])
	case op.Divide:
		return e.both("Div", in[0], in[1])
	case op.Power:
		return e.both("Pow", in[0], in[1])
	case array.Extremum:
		if o.Minimum {
			return e.both("Min", in[0], in[1])
		}
		return e.both("Max", in[0], in[1])
	case array.Transpose, array.Slice, array.Unslice, array.Repeat:
		return e.reordered(a.Op, in[0])
	}
	if len(in) == 1 {
		if v, ok := e.elementwise(a.Op, in[0]); ok {
			return v, nil
		}
	}
	for _, v := range in {
		if v.batch > 0 {
			return emitted{}, errors.Errorf("the op of a value of shape %v whose batch is not the first axis has no translation to ONNX", v.shape)
		}
	}
	switch o := a.Op.(type) {
	case op.Conv2D:
		return e.convolution(in[0], in[1], 1, o)
	case op.GroupedConv2D:
		c := op.Conv2D{Stride: o.Stride, Padding: o.Padding, Dilation: o.Dilation, Trailing: o.Trailing}
		return e.convolution(in[0], in[1], o.Groups, c)
	case op.MatMul:
		return e.product(o, in[0], in[1])
	case op.BiasAdd:
		return e.biasAdd(in[0], in[1])
	case op.MaxPool2D:
		return e.same(in[0], "MaxPool", poolAttributes(o.Window, o.Stride, o.Padding)), nil
	case op.AveragePool2D:
		attributes := poolAttributes(o.Window, o.Stride, o.Padding)
		attributes["count_include_pad"] = 0
		return e.same(in[0], "AveragePool", attributes), nil
	case op.BatchMatMul:
		return e.products(o, in[0], in[1])
	case op.FilterResponseNorm:
		return e.responseNorm(o, in)
	case op.GroupNorm:
		return e.groupNorm(o, in)
	case op.Threshold:
		return e.perChannel("Max", in[0], in[1])
	case op.Softmax, array.LogSoftmax, array.RowMaximum:
		return e.rows(a.Op, in[0])
	}
	return emitted{}, errors.New("the op has no translation to ONNX")
}

// reordered adds an op that reorders the elements of a value that is not stacked, such as the
// images.
func (e *Emission) reordered(o graph.Op, x emitted) (emitted, error) {
	if e.several(x) {
		return emitted{}, e.untranslated("the op of a value of shape %v", x.shape)
	}
	switch o := o.(type) {
	case array.Transpose:
		axes := slices.Clone(o.Axes[:len(x.shape)])
		y := e.same(x, "Transpose", Attributes{"perm": axes})
		y.batch = slices.Index(axes, x.batch)
		return y, nil
	case array.Slice:
		if o.Axis == x.batch {
			break
		}
		return e.with(x, e.w.Node("Slice", nil, x.name, e.w.Integers("start", o.Start), e.w.Integers("end", o.Start+o.Count*o.Step),
			e.w.Integers("axis", o.Axis), e.w.Integers("step", o.Step))), nil
	case array.Unslice:
		if o.Axis == x.batch || o.Step != 1 {
			break
		}
		pads := make([]int, 2*len(x.shape))
		pads[o.Axis], pads[len(x.shape)+o.Axis] = o.Start, o.Extent-o.Start-o.Count
		return e.with(x, e.w.Node("Pad", nil, x.name, e.w.Integers("pads", pads...))), nil
	case array.Repeat:
		if o.Axis == x.batch || x.shape[o.Axis] != 1 {
			break
		}
		times := slices.Repeat([]int{1}, len(x.shape))
		times[o.Axis] = o.Times
		return e.with(x, e.w.Node("Tile", nil, x.name, e.w.Integers("times", times...))), nil
	}
	return emitted{}, errors.New("the op has no translation to ONNX along this axis")
}

// rows adds an op over the rows of a matrix.
func (e *Emission) rows(o graph.Op, x emitted) (emitted, error) {
	if e.several(x) {
		return emitted{}, e.untranslated("the op of a value of shape %v", x.shape)
	}
	switch o.(type) {
	case op.Softmax:
		return e.same(x, "Softmax", Attributes{"axis": -1}), nil
	case array.LogSoftmax:
		return e.same(x, "LogSoftmax", Attributes{"axis": -1}), nil
	default:
		return e.same(x, "ReduceMax", Attributes{"axes": []int{1}, "keepdims": 0}), nil
	}
}

// products adds a batch of matrix products.
func (e *Emission) products(o op.BatchMatMul, x, y emitted) (emitted, error) {
	if e.several(x) || e.several(y) || x.values != nil || y.values != nil {
		return emitted{}, e.untranslated("products of shapes %v and %v", x.shape, y.shape)
	}
	turn := func(v emitted, transposed bool) string {
		if !transposed {
			return v.name
		}
		return e.w.Node("Transpose", Attributes{"perm": []int{0, 2, 1}}, v.name)
	}
	name := e.w.Node("MatMul", nil, turn(x, o.TransposeA), turn(y, o.TransposeB))
	return emitted{name: name, stacked: x.stacked || y.stacked}, nil
}

// elementwise adds an op of one input that keeps shapes, if o is one.
func (e *Emission) elementwise(o graph.Op, x emitted) (v emitted, ok bool) {
	switch o := o.(type) {
	case op.SiLU:
		return e.with(x, e.w.Node("Mul", nil, x.name, e.w.Node("Sigmoid", nil, x.name))), true
	case op.Squared:
		return e.with(x, e.w.Node("Mul", nil, x.name, x.name)), true
	case op.ELU:
		return e.same(x, "Elu", Attributes{"alpha": o.Alpha}), true
	case op.Scale:
		y := x.name
		if o.Factor != 1 {
			y = e.w.Node("Mul", nil, y, e.w.Float("factor", o.Factor))
		}
		if o.Offset != 0 {
			y = e.w.Node("Add", nil, y, e.w.Float("offset", o.Offset))
		}
		return e.with(x, y), true
	case op.Clip:
		return e.with(x, e.w.Node("Clip", nil, x.name, e.w.Float("low", o.Low), e.w.Float("high", o.High))), true
	}
	name, ok := plain[o]
	if !ok {
		return emitted{}, false
	}
	return e.same(x, name, nil), true
}

// plain has the ops that ONNX has, too, with ONNX's names.
var plain = map[graph.Op]string{
	op.ReLU{}: "Relu", op.Tanh{}: "Tanh", op.Sigmoid{}: "Sigmoid", op.Softplus{}: "Softplus", op.Softsign{}: "Softsign",
	op.Abs{}: "Abs", op.Negate{}: "Neg", op.Exp{}: "Exp", op.Log{}: "Log", op.Sqrt{}: "Sqrt", op.Erf{}: "Erf",
}

// computed returns the values, under each sample, of an op of parameters and constants.
func (e *Emission) computed(o graph.Op, in []emitted) (y emitted, err error) {
	y = emitted{batch: -1, stacked: true, known: !slices.ContainsFunc(in, func(v emitted) bool { return !v.known })}
	if _, ok := o.(op.View); ok {
		y.values = in[0].values
		return y, nil
	}
	for sample := range e.samples {
		if sample > 0 && y.known {
			y.values = append(y.values, y.values[0])
			continue
		}
		b := graph.New(tensor.Float32)
		b.Mode = graph.Prediction
		nodes := make([]*graph.Node, len(in))
		for i, v := range in {
			wide := make([]float64, len(v.values[sample]))
			for k, x := range v.values[sample] {
				wide[k] = float64(x)
			}
			nodes[i] = b.Apply(op.ViewAs(v.shape...), b.Table(fmt.Sprint("input ", i), wide))
		}
		result := b.Apply(o, nodes...)
		b.Output("result", result)
		if b.Err() != nil {
			return y, b.Err()
		}
		values := make([]float32, graph.ShapeOf(result).Elements())
		err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
			if err := s.Run(1); err != nil {
				return err
			}
			return graph.Read(s, "result", 0, 0, values)
		})
		if err != nil {
			return y, err
		}
		y.values = append(y.values, values)
	}
	return y, nil
}

// with returns a value that is stacked if x is, and has the batch on the same axis.
func (e *Emission) with(x emitted, name string) emitted {
	return emitted{name: name, batch: x.batch, stacked: x.stacked}
}

func (e *Emission) same(x emitted, op string, attributes Attributes) emitted {
	return e.with(x, e.w.Node(op, attributes, x.name))
}

// several reports whether a value is stacked over more than one sample.
func (e *Emission) several(v emitted) bool { return v.stacked && e.samples > 1 }

// stack returns x stacked. If x does not depend on the weights, it is copied for each sample.
func (e *Emission) stack(x emitted) emitted {
	if x.stacked || e.samples == 1 {
		x.stacked = true
		return x
	}
	x.stacked = true
	switch {
	case len(x.shape) == 2:
		x.name = e.w.Node("Expand", nil, x.name, e.w.Integers("samples", e.samples, 1, 1))
	default:
		x.name = e.w.Node("Concat", Attributes{"axis": 1}, slices.Repeat([]string{x.name}, e.samples)...)
	}
	return x
}

// both adds an elementwise op of two values, which may broadcast unless they are stacked.
func (e *Emission) both(name string, x, y emitted) (emitted, error) {
	axes, batch := max(len(x.shape), len(y.shape)), -1
	for _, v := range []emitted{x, y} {
		if v.batch >= 0 {
			batch = max(batch, v.batch+axes-len(v.shape))
		}
	}
	equal, apart, extent := x.shape.Equal(y.shape), false, 0
	for _, v := range []emitted{x, y} {
		at := batch - axes + len(v.shape) // the batch's axis in v
		switch {
		case v.batch >= 0: // the axis may contain others after the batch, which do not broadcast
			apart = apart || v.batch != at || extent > 0 && v.shape[at] != extent
			extent = v.shape[v.batch]
		case batch >= 0 && at >= 0:
			apart = apart || v.shape[at] != 1
		}
	}
	if apart {
		return emitted{}, e.untranslated("an op of shapes %v and %v", x.shape, y.shape)
	}
	x, err := e.operand(x)
	if err != nil {
		return x, err
	}
	if y, err = e.operand(y); err != nil {
		return y, err
	}
	if e.several(x) || e.several(y) {
		if !equal {
			return emitted{}, e.untranslated("an op of shapes %v and %v", x.shape, y.shape)
		}
		if x.stacked != y.stacked {
			x, y = e.stack(x), e.stack(y)
		}
	}
	return emitted{name: e.w.Node(name, nil, x.name, y.name), batch: batch, stacked: x.stacked || y.stacked}, nil
}

// operand returns a value with a name in the model, as which a parameter or constant is added. It
// is an error if the parameter's values differ between samples.
func (e *Emission) operand(v emitted) (emitted, error) {
	if v.values == nil {
		return v, nil
	}
	if e.samples > 1 && !v.known {
		return v, e.untranslated("an op of a parameter of shape %v", v.shape)
	}
	return emitted{name: e.w.Floats("constant", v.values[0], v.shape...), shape: v.shape, batch: -1, stacked: !v.known}, nil
}

// parameter adds the values of all samples, one after the other, as a constant.
func (e *Emission) parameter(name string, p emitted, shape ...int) (string, error) {
	if p.values == nil {
		return "", errComputed
	}
	return e.w.Floats(name, slices.Concat(p.values...), shape...), nil
}

var errComputed = errors.New("an op whose weights are computed has no translation to ONNX")

// channels adds a parameter [C] in the shape in which it is broadcast over x.
func (e *Emission) channels(name string, p, x emitted) (string, error) {
	c := p.shape.Elements()
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
	if len(x.shape) != 2 && len(x.shape) != 4 {
		return emitted{}, errors.Errorf("values of shape %v have no translation to ONNX, only [B C H W] and [B D]", x.shape)
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
	return emitted{name: name, stacked: true}, err
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

// view adds a change of shape. In row-major order, the batch stays behind the same number of
// elements.
func (e *Emission) view(o op.View, x emitted, to tensor.Shape) (emitted, error) {
	if x.shape.Equal(to) {
		return x, nil
	}
	axis, before, elements := -1, x.shape[:max(0, x.batch)].Elements(), 1
	for i, extent := range to {
		if kept := i == x.batch && len(to) >= len(x.shape) && to[:i+1].Equal(x.shape[:i+1]); elements == before && (axis < 0 || kept) {
			axis = i
		}
		elements *= extent
	}
	if len(x.shape) == 0 || axis < 0 || e.several(x) && (x.shape[0] != to[0] || len(x.shape) != 4 || len(to) != 2) {
		return emitted{}, e.untranslated("a view of shape %v as %v", x.shape, to)
	}
	if e.several(x) {
		return e.with(x, e.flat(x.name, to[1])), nil
	}
	shape := slices.Clone(to)
	if x.batch >= 0 {
		shape[axis] = -1
		x.batch = axis
	}
	return e.with(x, e.w.Node("Reshape", nil, x.name, e.w.Integers("shape", shape...))), nil
}

// untranslated returns an error for a part of the network that has no translation, or only one for
// a single sample.
func (e *Emission) untranslated(format string, arguments ...any) error {
	text := fmt.Sprintf(format, arguments...) + " has no translation to ONNX"
	if e.samples > 1 {
		text += " under several samples at once: compute one after the other (together 1)"
	}
	return errors.New(text)
}

// flat returns stacked activations [B nC ...], with width elements for each sample, as [n B width].
func (e *Emission) flat(x string, width int) string {
	split := e.w.Node("Reshape", nil, x, e.w.Integers("shape", -1, e.samples, width))
	return e.w.Node("Transpose", Attributes{"perm": []int{1, 0, 2}}, split)
}

// reduction adds a mean or sum over axes without the batch, such as the positions of activations.
func (e *Emission) reduction(name string, over op.Axes, x emitted) (emitted, error) {
	if over == 0 || x.batch >= 0 && over>>x.batch&1 == 1 || e.several(x) && (len(x.shape) != 4 || over != op.AxesOf(2, 3)) {
		return emitted{}, e.untranslated("the op over some axes of shape %v", x.shape)
	}
	var axes []int
	for axis := range x.shape {
		if over>>axis&1 == 1 {
			axes = append(axes, axis)
		}
	}
	inputs, attributes := []string{x.name}, Attributes{"axes": axes, "keepdims": 0}
	if name == "ReduceSum" { // whose axes are an input since opset 13
		inputs, attributes = append(inputs, e.w.Integers("axes", axes...)), Attributes{"keepdims": 0}
	}
	for _, axis := range slices.Backward(axes) {
		if axis < x.batch {
			x.batch--
		}
	}
	y := e.w.Node(name, attributes, inputs...)
	if e.several(x) {
		y = e.flat(y, x.shape[1])
	}
	return e.with(x, y), nil
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
func poolAttributes(size, stride, padding [2]int) Attributes {
	return Attributes{
		"kernel_shape": size[:], "strides": stride[:], "pads": []int{padding[0], padding[1], padding[0], padding[1]},
	}
}
