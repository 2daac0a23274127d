package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

func shapeOf(t *translator) ([]value, error) {
	x, err := t.anyShape(0)
	if err != nil {
		return nil, err
	}
	within := func(i int) int {
		if i < 0 {
			i += len(x)
		}
		return max(0, min(len(x), i))
	}
	start, end := within(t.integer("start", 0)), within(t.integer("end", len(x)))
	return []value{{array: vectorOf(x[start:max(start, end)])}}, nil
}

func sizeOf(t *translator) ([]value, error) {
	x, err := t.anyShape(0)
	return []value{{array: &ndarray{[]int{}, Int64, []float64{float64(product(x))}}}}, err
}

// constantNode translates Constant.
func constantNode(t *translator) ([]value, error) {
	for name, a := range t.attributes {
		var y *ndarray
		switch name {
		case "value":
			if a.tensor == nil {
				return nil, errors.New("the value must be a tensor")
			}
			y = a.tensor.array()
		case "value_float":
			y = &ndarray{[]int{}, Float32, []float64{a.float}}
		case "value_floats":
			y = &ndarray{[]int{len(a.floats)}, Float32, a.floats}
		case "value_int":
			y = &ndarray{[]int{}, Int64, []float64{float64(a.integer)}}
		case "value_ints":
			y = &ndarray{[]int{len(a.integers)}, Int64, make([]float64, len(a.integers))}
			for i, v := range a.integers {
				y.values[i] = float64(v)
			}
		default:
			continue
		}
		return []value{{array: y}}, nil
	}
	return nil, errors.New("it must have a value that is a tensor or numbers")
}

func constantOfShape(t *translator) ([]value, error) {
	shape, err := t.extents("shape", 0)
	if err != nil {
		return nil, err
	}
	y, err := newArray(Float32, shape)
	if err != nil {
		return nil, err
	}
	if a := t.attributes["value"]; a != nil && a.tensor != nil {
		fill := a.tensor.array()
		if len(fill.values) != 1 {
			return nil, errors.Errorf("the value must be one number, got shape %v", fill.shape)
		}
		y.kind = fill.kind
		for i := range y.values {
			y.values[i] = fill.values[0]
		}
	}
	return []value{{array: y}}, nil
}

func castTo(t *translator, x value) (value, error) {
	to := ElementType(t.integer("to", 0))
	if x.array != nil {
		return value{array: x.array.converted(to)}, nil
	}
	if !to.Floating() {
		return value{}, errors.Errorf("images and what follows from them stay floats, got a conversion to %v", to)
	}
	return x, nil
}

func rangeOf(t *translator) ([]value, error) {
	inputs, err := t.constantsOnly(3)
	if err != nil {
		return nil, err
	}
	for _, a := range inputs[:3] {
		if len(a.values) != 1 {
			return nil, errors.Errorf("start, limit and delta must be numbers, got shape %v", a.shape)
		}
	}
	start, limit, delta := inputs[0].values[0], inputs[1].values[0], inputs[2].values[0]
	count := math.Ceil((limit - start) / delta)
	if !(count <= maxFolded) || delta == 0 {
		return nil, errors.Errorf("a range from %v to %v by %v is too long", start, limit, delta)
	}
	y := &ndarray{[]int{max(0, int(count))}, inputs[0].kind, make([]float64, max(0, int(count)))}
	for i := range y.values {
		y.values[i] = start + float64(i)*delta
	}
	return []value{{array: y}}, nil
}

// constantsOnly returns the node's inputs, at least n of them, if they are known.
func (t *translator) constantsOnly(n int) ([]*ndarray, error) {
	if err := t.needs(n); err != nil {
		return nil, err
	}
	inputs, ok := t.folded()
	if !ok {
		return nil, errors.New("it is supported for shapes and constants only")
	}
	return inputs, nil
}

// mod translates Mod, whose result has the sign of the divisor or, with fmod, of the dividend.
func mod(t *translator) ([]value, error) {
	inputs, err := t.constantsOnly(2)
	if err != nil {
		return nil, err
	}
	if !inputs[1].kind.Floating() && slices.Contains(inputs[1].values, 0) {
		return nil, errDivisionByZero
	}
	y, err := broadcast(inputs[0], inputs[1], inputs[0].kind, func(x, y float64) float64 {
		rest := math.Mod(x, y)
		if t.integer("fmod", 0) == 0 && rest != 0 && (rest < 0) != (y < 0) {
			rest += y
		}
		return rest
	})
	return []value{{array: y}}, err
}

func cumSum(t *translator) ([]value, error) {
	inputs, err := t.constantsOnly(2)
	if err != nil {
		return nil, err
	}
	x, y := inputs[0], inputs[0].converted(inputs[0].kind)
	if len(inputs[1].values) != 1 {
		return nil, errors.Errorf("the axis must be one number, got shape %v", inputs[1].shape)
	}
	axis, err := t.axis(inputs[1].integers()[0], len(x.shape), false)
	if err != nil {
		return nil, err
	}
	stride, extent := product(x.shape[axis+1:]), x.shape[axis]
	for start := range x.values {
		if start/stride%extent != 0 {
			continue
		}
		total := 0.0
		for k := range extent {
			at := start + k*stride
			if t.integer("reverse", 0) != 0 {
				at = start + (extent-1-k)*stride
			}
			before := total
			total += x.values[at]
			y.values[at] = total
			if t.integer("exclusive", 0) != 0 {
				y.values[at] = before
			}
		}
	}
	return []value{{array: y}}, nil
}

// scatterND translates ScatterND, with which exporters write to a part of an array. What follows
// from images may only be written to slices.
func scatterND(t *translator) ([]value, error) {
	if err := t.needs(3); err != nil {
		return nil, err
	}
	inputs, ok := t.folded()
	if !ok {
		return t.assignment()
	}
	data, indices, updates := inputs[0], inputs[1], inputs[2]
	if r := t.text("reduction", "none"); r != "none" {
		return nil, errors.Errorf("reduction must be none, got %q", r)
	}
	last := len(indices.shape) - 1
	if last < 0 || indices.shape[last] > len(data.shape) {
		return nil, errors.Errorf("indices of shape %v do not select from shape %v", indices.shape, data.shape)
	}
	depth := indices.shape[last]
	count, inner := product(indices.shape[:last]), product(data.shape[depth:])
	if len(updates.values) != count*inner {
		return nil, errors.Errorf("updates must have %d elements, got shape %v", count*inner, updates.shape)
	}
	y, strides, at := data.converted(data.kind), stridesOf(data.shape), indices.integers()
	for k := range count {
		to := 0
		for axis := range depth {
			i := at[k*depth+axis]
			if i < 0 {
				i += data.shape[axis]
			}
			if i < 0 || i >= data.shape[axis] {
				return nil, errors.Errorf("indices on axis %d of shape %v must be below %d, got %d", axis, data.shape, data.shape[axis], at[k*depth+axis])
			}
			to += i * strides[axis]
		}
		copy(y.values[to:], updates.values[k*inner:][:inner])
	}
	return []value{{array: y}}, nil
}

// where selects between two values: c x + (1 - c) y, where the condition c is 0 or 1. Infinite
// constants, such as those that mask attention, become the largest number, since 0 times infinity
// is NaN. Known values are selected exactly.
func where(t *translator) ([]value, error) {
	if err := t.needs(3); err != nil {
		return nil, err
	}
	if inputs, ok := t.folded(); ok {
		y, err := selected(inputs[0], inputs[1], inputs[2])
		return []value{{array: y}}, err
	}
	in := make([]*graph.Node, 3)
	for i := range in {
		x, err := t.operand(i)
		if err != nil {
			return nil, err
		}
		if x.array != nil {
			x.array = x.array.converted(x.array.kind)
			for k, v := range x.array.values {
				x.array.values[k] = max(-math.MaxFloat32, min(math.MaxFloat32, v))
			}
		}
		if in[i], err = t.asNode(x); err != nil {
			return nil, err
		}
	}
	chosen := t.b.Apply(op.Multiply{}, in[0], in[1])
	other := t.b.Apply(op.Multiply{}, t.scaled(in[0], -1, 1), in[2])
	return []value{{node: t.b.Apply(op.Add{}, chosen, other)}}, t.b.Err()
}

// selected returns x where the condition is not 0, else y.
func selected(condition, x, y *ndarray) (*ndarray, error) {
	nothing := math.Copysign(0, -1) // added to any number, also 0 and NaN, it leaves the number
	pick := func(of *ndarray, chosen bool) (*ndarray, error) {
		return broadcast(of, condition, of.kind, func(v, c float64) float64 {
			if (c != 0) == chosen {
				return v
			}
			return nothing
		})
	}
	ofX, err := pick(x, true)
	if err != nil {
		return nil, err
	}
	ofY, err := pick(y, false)
	if err != nil {
		return nil, err
	}
	return broadcast(ofX, ofY, x.kind, func(x, y float64) float64 { return x + y })
}

// dropout translates Dropout as in inference: the identity, with a mask of ones.
func dropout(t *translator) ([]value, error) {
	if training, ok := t.known(2); ok && slices.ContainsFunc(training.values, func(v float64) bool { return v != 0 }) {
		return nil, errors.New("dropout must be inactive, but training_mode is set: export the model in eval mode")
	}
	x, err := t.operand(0)
	if err != nil || len(t.outputs) < 2 {
		return []value{x}, err
	}
	mask, err := newArray(Bool, x.shape())
	if err != nil {
		return nil, err
	}
	for i := range mask.values {
		mask.values[i] = 1
	}
	return []value{x, {array: mask}}, nil
}
