package onnx

import (
	"fmt"
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
	removed int          // axes ahead of it, by reductions or views
	stacked bool
	// values are a parameter's, for each sample. The model does not contain the parameter itself,
	// only constants in the layouts that its users need.
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
		if _, moves := a.Op.(array.Transpose); len(a.Inputs) > 0 && v.removed == 0 && !moves {
			if x := e.values[a.Inputs[0]]; len(x.shape) == len(v.shape) && x.batch == v.batch {
				v.removed = x.removed
			}
		}
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
	rounded := [][]float32{tensor.Convert[float32](values)}
	e.values[n] = emitted{shape: graph.ShapeOf(n), batch: -1, stacked: true, values: slices.Repeat(rounded, e.samples), known: true}
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
	case op.BatchMatMul:
		return e.products(o, in[0], in[1])
	case array.Transpose, array.Slice, array.Unslice, array.Repeat:
		return e.reordered(a.Op, in[0])
	case array.Concat:
		return e.concat(o, in, graph.ShapeOf(a.Output)[o.Axis])
	}
	if operator, ok := arithmeticOperators[a.Op]; ok {
		return e.both(operator, in[0], in[1])
	}
	if operator, ok := comparisonOperators[a.Op]; ok {
		y, err := e.both(operator, in[0], in[1])
		return e.same(y, "Cast", Attributes{"to": int(Float32)}), err
	}
	if len(in) == 1 {
		if v, ok := e.elementwise(a.Op, in[0]); ok {
			return v, nil
		}
	}
	if x := in[0]; x.batch == 1 && x.unbiased == nil && e.samples == 1 {
		return e.byRows(a.Op, in, graph.ShapeOf(a.Output))
	}
	return e.batchFirst(a.Op, in)
}

// arithmeticOperators has the operators of ops of two values that broadcast.
var arithmeticOperators = map[graph.Op]string{
	op.Add{}: "Add", op.Subtract{}: "Sub", op.Multiply{}: "Mul", op.Divide{}: "Div", op.Power{}: "Pow",
	array.Extremum{}: "Max", array.Extremum{Minimum: true}: "Min",
}

// comparisonOperators has the operators of ops that compare two values that broadcast.
var comparisonOperators = map[graph.Op]string{
	op.Compare{Less: true}: "Less", op.Compare{Equal: true}: "Equal", op.Compare{Less: true, Equal: true}: "LessOrEqual",
}

// byRows adds an op of a value whose batch is its second axis, as in attention over [L B E]. Such
// ops compute each row from one row: it is applied to all LB rows at once.
func (e *Emission) byRows(o graph.Op, in []emitted, to tensor.Shape) (emitted, error) {
	if len(to) < 2 {
		return emitted{}, errors.Errorf("the op of rows of shape %v, with the batch on axis 1, has no translation to ONNX", in[0].shape)
	}
	rows := slices.Clone(in)
	rows[0].name, rows[0].batch = e.reshape(in[0].name, append([]int{-1}, in[0].shape[1:]...)), 0
	y, err := e.batchFirst(o, rows)
	if err != nil {
		return y, err
	}
	back := append([]int{to[0], -1}, to[2:]...)
	y.batch = 1
	if add := y.unbiased; add != nil {
		y.unbiased = e.within(func(bias emitted) (string, error) {
			name, err := add(bias)
			if err != nil {
				return "", err
			}
			return e.reshape(name, back), nil
		})
		return y, nil
	}
	y.name = e.reshape(y.name, back)
	return y, nil
}

func (e *Emission) reshape(name string, shape []int) string {
	return e.w.Node("Reshape", nil, name, e.w.Integers("shape", shape...))
}

// batchFirst adds an op whose inputs must have the batch on the first axis.
func (e *Emission) batchFirst(o graph.Op, in []emitted) (emitted, error) {
	for _, v := range in {
		if v.batch > 0 && v.unbiased == nil {
			return emitted{}, errors.Errorf("the op of a value of shape %v whose batch is not the first axis has no translation to ONNX", v.shape)
		}
	}
	switch o := o.(type) {
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
		return e.same(in[0], "MaxPool", poolAttributes(o.Window, o.Stride, o.Padding, o.Trailing)), nil
	case op.AveragePool2D:
		attributes := poolAttributes(o.Window, o.Stride, o.Padding, o.Trailing)
		attributes["count_include_pad"] = 0
		return e.same(in[0], "AveragePool", attributes), nil
	case op.FilterResponseNorm:
		return e.responseNorm(o, in)
	case op.GroupNorm:
		return e.groupNorm(o, in)
	case op.Threshold:
		return e.perChannel("Max", in[0], in[1])
	case op.Softmax, array.LogSoftmax, array.RowMaximum:
		return e.rows(o, in[0])
	}
	return emitted{}, errors.New("the op has no translation to ONNX")
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
			wide := tensor.Convert[float64](v.values[sample])
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

// untranslated returns an error for a part of the network that has no translation, or only one for
// a single sample.
func (e *Emission) untranslated(format string, arguments ...any) error {
	text := fmt.Sprintf(format, arguments...) + " has no translation to ONNX"
	if e.samples > 1 {
		text += " under several samples at once: compute one after the other (together 1)"
	}
	return errors.New(text)
}
