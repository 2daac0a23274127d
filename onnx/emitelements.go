package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

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
		if o.Axis == x.batch {
			break
		}
		y := x.name
		if o.Step > 1 { // zeros behind each element, on an axis of its own
			open := slices.Clone(x.shape)
			if x.batch >= 0 {
				open[x.batch] = -1
			}
			y = e.reshape(y, slices.Insert(slices.Clone(open), o.Axis+1, 1))
			y = e.padded(y, len(x.shape)+1, o.Axis+1, 0, o.Step-1)
			open[o.Axis] *= o.Step
			y = e.reshape(y, open)
		}
		return e.with(x, e.padded(y, len(x.shape), o.Axis, o.Start, o.Extent-o.Start-o.Count*o.Step)), nil
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

// concat joins values along an axis. A constant has no batch, over which Concat does not broadcast:
// with one among the inputs, each input is put among zeros, and the results are added.
func (e *Emission) concat(o array.Concat, in []emitted, total int) (y emitted, err error) {
	names, constants := make([]string, len(in)), false
	y.batch = -1
	for i, x := range in {
		if e.several(x) {
			return y, e.untranslated("the op of a value of shape %v", x.shape)
		}
		names[i], constants = x.name, constants || x.values != nil
		if x.values == nil {
			if y.batch >= 0 && x.batch != y.batch {
				return y, errors.New("the op of values with the batch on different axes has no translation to ONNX")
			}
			y = e.with(x, "")
		}
	}
	if o.Axis == y.batch {
		return y, errors.New("the op has no translation to ONNX along the batch")
	}
	if !constants {
		y.name = e.w.Node("Concat", Attributes{"axis": o.Axis}, names...)
		return y, nil
	}
	at := 0
	for _, x := range in {
		extent := x.shape[o.Axis]
		if x, err = e.operand(x); err != nil {
			return y, err
		}
		part := e.padded(x.name, len(x.shape), o.Axis, at, total-at-extent)
		if at += extent; y.name != "" {
			part = e.w.Node("Add", nil, y.name, part)
		}
		y.name = part
	}
	return y, nil
}

// padded adds zeros before and after an axis of a value; a negative number of them crops it.
func (e *Emission) padded(x string, axes, axis, before, after int) string {
	pads := make([]int, 2*axes)
	pads[axis], pads[axes+axis] = before, after
	return e.w.Node("Pad", nil, x, e.w.Integers("pads", pads...))
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

// products adds a number of matrix products. The batch may be among the pairs of matrices, or among
// the matrices, their rows or their columns if the other factors do not contain it.
func (e *Emission) products(o op.BatchMatMul, x, y emitted) (emitted, error) {
	if e.several(x) || e.several(y) {
		return emitted{}, e.untranslated("products of shapes %v and %v", x.shape, y.shape)
	}
	rows, columns := 1, 2
	if o.TransposeA {
		rows = 2
	}
	if o.TransposeB {
		columns = 1
	}
	batch := 0
	switch {
	case x.batch == 0 && y.batch == 0:
	case x.batch == 0 && y.batch < 0, x.batch < 0 && y.batch == 0:
	case x.batch == rows && y.batch < 0:
		batch = 1
	case x.batch < 0 && y.batch == columns:
		batch = 2
	default:
		return emitted{}, e.untranslated("products of shapes %v and %v with the batch on axes %d and %d", x.shape, y.shape, x.batch, y.batch)
	}
	x, err := e.operand(x)
	if err != nil {
		return x, err
	}
	if y, err = e.operand(y); err != nil {
		return y, err
	}
	left, right := e.factor(x, o.TransposeA), e.factor(y, o.TransposeB)
	stacked := x.stacked || y.stacked
	if batch > 0 || x.batch == y.batch {
		return emitted{name: e.w.Node("MatMul", nil, left.name, right.name), batch: batch, stacked: stacked}, nil
	}
	for _, v := range []*emitted{&left, &right} { // [nB ...] times [n ...], as [B n ...] times [n ...]
		if v.batch == 0 {
			v.name = e.reshape(v.name, append([]int{-1}, v.shape...))
		}
	}
	name := e.reshape(e.w.Node("MatMul", nil, left.name, right.name), []int{-1, left.shape[1], right.shape[2]})
	return emitted{name: name, stacked: stacked}, nil
}

// factor returns matrices or their transposes.
func (e *Emission) factor(v emitted, transposed bool) emitted {
	if transposed {
		v.name = e.w.Node("Transpose", Attributes{"perm": []int{0, 2, 1}}, v.name)
		v.shape = tensor.Shape{v.shape[0], v.shape[2], v.shape[1]}
	}
	return v
}

// elementwise adds an op of one input that keeps shapes, if o is one.
func (e *Emission) elementwise(o graph.Op, x emitted) (v emitted, ok bool) {
	switch o := o.(type) {
	case op.SiLU:
		return e.with(x, e.w.Node("Mul", nil, x.name, e.w.Node("Sigmoid", nil, x.name))), true
	case op.GELU:
		phi := e.w.Node("Erf", nil, e.w.Node("Mul", nil, x.name, e.w.Float("root", math.Sqrt2/2)))
		half := e.w.Node("Mul", nil, x.name, e.w.Float("half", 0.5))
		return e.with(x, e.w.Node("Mul", nil, half, e.w.Node("Add", nil, phi, e.w.Float("one", 1)))), true
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
	for name, f := range functions {
		if f.op == o {
			return e.same(x, name, nil), true
		}
	}
	return emitted{}, false
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

// view adds a change of shape. In row-major order, the batch stays behind the same number of
// elements. If several axes of extent 1 are there, it gets the one that keeps its position, where
// axes that were removed count.
func (e *Emission) view(o op.View, x emitted, to tensor.Shape) (emitted, error) {
	if x.shape.Equal(to) {
		return x, nil
	}
	axis, before, elements := -1, x.shape[:max(0, x.batch)].Elements(), 1
	for i, extent := range to {
		kept := i == x.batch && len(to) >= len(x.shape) && to[:i].Equal(x.shape[:i]) && (extent == x.shape[i] || dividesNext(x.shape[i:], extent))
		restored := i == x.batch+x.removed && len(to) == len(x.shape)+x.removed && extent == 1
		if elements == before && (axis < 0 || kept || restored) {
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
	shape, removed := slices.Clone(to), 0
	if x.batch >= 0 {
		shape[axis] = -1
		removed = max(0, x.batch+x.removed-axis)
		x.batch = axis
	}
	y := e.with(x, e.reshape(x.name, shape))
	y.removed = removed
	return y, nil
}

// dividesNext reports whether an axis that begins with the first axis of a shape has only a part of
// the next one.
func dividesNext(shape tensor.Shape, extent int) bool {
	return len(shape) > 1 && extent%(shape[0]*shape[1]) != 0
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
	removed := 0
	for _, axis := range slices.Backward(axes) {
		if axis < x.batch {
			x.batch--
			removed++
		}
	}
	y := e.w.Node(name, attributes, inputs...)
	if e.several(x) {
		y = e.flat(y, x.shape[1])
	}
	v := e.with(x, y)
	v.removed = removed
	return v, nil
}
