package onnx

import (
	"cmp"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// gemm translates y = alpha op(a) op(b) + beta c.
func gemm(t *translator) ([]value, error) {
	in, err := t.xs(2)
	if err != nil {
		return nil, err
	}
	a, b := in[0], in[1]
	y := t.b.Apply(op.MatMul{TransposeA: t.integer("transA", 0) != 0, TransposeB: t.integer("transB", 0) != 0}, a, b)
	if t.b.Err() != nil {
		return nil, t.b.Err()
	}
	y = t.scaled(y, t.float("alpha", 1), 0)
	if t.has(2) && t.float("beta", 1) != 0 {
		c, err := t.x(2)
		if err != nil {
			return nil, err
		}
		c = t.scaled(c, t.float("beta", 1), 0)
		if shape := graph.ShapeOf(c); len(shape) == 1 && shape[0] == graph.ShapeOf(y)[1] {
			y = t.b.Apply(op.BiasAdd{}, y, c) // fused into the product
		} else {
			y = t.b.Apply(op.Add{}, y, c)
		}
	}
	return []value{{node: y}}, t.b.Err()
}

// matMul translates NumPy's matmul: vectors get an axis of extent 1, and leading axes broadcast.
func matMul(t *translator) ([]value, error) {
	in, err := t.xs(2)
	if err != nil {
		return nil, err
	}
	a, b := in[0], in[1]
	left, right := []int(graph.ShapeOf(a)), []int(graph.ShapeOf(b))
	if len(left) == 0 || len(right) == 0 {
		return nil, errors.Errorf("operands must have at least one axis, got %v and %v", left, right)
	}
	rowVector, columnVector := len(left) == 1, len(right) == 1
	if rowVector {
		left = []int{1, left[0]}
	}
	if columnVector {
		right = []int{right[0], 1}
	}
	rows, columns := left[len(left)-2], right[len(right)-1]
	outer, err := broadcastShape(left[:len(left)-2], right[:len(right)-2])
	if err != nil {
		return nil, err
	}
	var y *graph.Node
	if len(right) == 2 { // one product of all rows
		flat := t.view(a, []int{product(left[:len(left)-1]), left[len(left)-1]})
		y = t.b.Apply(op.MatMul{}, flat, t.view(b, right))
	} else {
		batches := func(x *graph.Node, shape []int) (*graph.Node, error) {
			matrix := shape[len(shape)-2:]
			wide, err := t.expanded(t.view(x, shape), slices.Concat(outer, matrix))
			if err != nil {
				return nil, err
			}
			return t.view(wide, []int{product(outer), matrix[0], matrix[1]}), nil
		}
		if a, err = batches(a, left); err != nil {
			return nil, err
		}
		if b, err = batches(b, right); err != nil {
			return nil, err
		}
		y = t.b.Apply(op.BatchMatMul{}, a, b)
	}
	if t.b.Err() != nil {
		return nil, t.b.Err()
	}
	shape := slices.Clone(outer)
	if !rowVector {
		shape = append(shape, rows)
	}
	if !columnVector {
		shape = append(shape, columns)
	}
	return []value{{node: t.view(y, shape)}}, t.b.Err()
}

// rows translates an operator over an axis by an op over the rows of a matrix. Until opset 12 the
// operator took all axes from the given one on as a row.
func rows(o graph.Op) translation {
	return func(t *translator) ([]value, error) {
		x, err := t.x(0)
		if err != nil {
			return nil, err
		}
		shape := []int(graph.ShapeOf(x))
		axis := t.integer("axis", -1)
		if t.opset < 13 {
			axis = t.integer("axis", 1)
		}
		if axis, err = t.axis(axis, len(shape), false); err != nil {
			return nil, err
		}
		end := axis + 1
		if t.opset < 13 {
			end = len(shape)
		}
		if err := t.keepsExamplesApart(axis, end); err != nil {
			return nil, err
		}
		if t.opset < 13 {
			y := t.b.Apply(o, t.view(x, []int{product(shape[:axis]), product(shape[axis:])}))
			return []value{{node: t.view(y, shape)}}, t.b.Err()
		}
		last := len(shape) - 1
		swap := span(0, 1, len(shape))
		swap[axis], swap[last] = last, axis
		turned, err := t.transposed(value{node: x}, swap)
		if err != nil {
			return nil, err
		}
		inner := graph.ShapeOf(turned.node)
		y := t.view(t.b.Apply(o, t.view(turned.node, []int{product(inner[:last]), inner[last]})), inner)
		made, err := t.transposed(value{node: y}, swap)
		return []value{made}, err
	}
}

// combination reduces the marked axes of a node. It may keep them with extent 1 or not.
type combination func(t *translator, x *graph.Node, over []bool) (*graph.Node, error)

// over returns the combination that an op computes.
func over(o func(axes op.Axes) graph.Op) combination {
	return func(t *translator, x *graph.Node, over []bool) (*graph.Node, error) {
		var axes []int
		for axis, reduced := range over {
			if reduced {
				axes = append(axes, axis)
			}
		}
		return t.b.Apply(o(op.AxesOf(axes...)), x), t.b.Err()
	}
}

// total is the combination by addition.
var total = over(func(axes op.Axes) graph.Op { return op.Sum{Axes: axes} })

// applied returns a combination with an op before and one after it, either of which may be nil.
func applied(before graph.Op, combine combination, after graph.Op) combination {
	return func(t *translator, x *graph.Node, over []bool) (*graph.Node, error) {
		if before != nil {
			x = t.b.Apply(before, x)
		}
		y, err := combine(t, x, over)
		if err == nil && after != nil {
			y = t.b.Apply(after, y)
		}
		return y, cmp.Or(err, t.b.Err())
	}
}

// logSumExp is the combination by log(sum(exp(x))): x minus the logarithm of its softmax, which is
// the same in the whole row. It is computed at the row's maximum, where both are small.
func logSumExp(t *translator, x *graph.Node, over []bool) (*graph.Node, error) {
	matrix, err := t.matrix(x, over)
	if err != nil {
		return nil, err
	}
	highest := t.b.Apply(array.RowMaximum{}, t.b.Apply(array.LogSoftmax{}, matrix))
	return t.b.Apply(op.Subtract{}, t.b.Apply(array.RowMaximum{}, matrix), highest), t.b.Err()
}

// matrix returns x with the axes to reduce as columns and the others as rows.
func (t *translator) matrix(x *graph.Node, over []bool) (*graph.Node, error) {
	var kept, reduced []int
	for axis, is := range over {
		if is {
			reduced = append(reduced, axis)
		} else {
			kept = append(kept, axis)
		}
	}
	turned, err := t.transposed(value{node: x}, slices.Concat(kept, reduced))
	if err != nil {
		return nil, err
	}
	shape := graph.ShapeOf(turned.node)
	return t.view(turned.node, []int{product(shape[:len(kept)]), product(shape[len(kept):])}), t.b.Err()
}

// maximum returns the combination by the maximum or minimum.
func maximum(minimum bool) combination {
	return func(t *translator, x *graph.Node, over []bool) (*graph.Node, error) {
		matrix, err := t.matrix(x, over)
		if err != nil {
			return nil, err
		}
		if !minimum {
			return t.b.Apply(array.RowMaximum{}, matrix), t.b.Err()
		}
		lowest := t.b.Apply(array.RowMaximum{}, t.b.Apply(op.Negate{}, matrix))
		return t.b.Apply(op.Negate{}, lowest), t.b.Err()
	}
}

// reduction translates an operator that reduces axes. fold combines known values, and finish is
// applied to the combination of n of them.
func reduction(combine combination, start float64, fold func(total, x float64) float64, finish func(total float64, n int) float64) translation {
	return func(t *translator) ([]value, error) {
		shape, err := t.anyShape(0)
		if err != nil {
			return nil, err
		}
		axes, _, err := t.integersOf("axes", 1)
		if err != nil {
			return nil, err
		}
		each := len(shape) == 0 || len(axes) == 0 && t.integer("noop_with_empty_axes", 0) != 0 // element is reduced
		if len(axes) == 0 && !each {
			axes = span(0, 1, len(shape))
		}
		over := make([]bool, len(shape))
		for i, axis := range axes {
			at, err := t.axis(axis, len(shape), false)
			if err != nil {
				return nil, err
			}
			axes[i], over[at] = at, true
		}
		kept, full := []int{}, []int{}
		for axis, extent := range shape {
			if over[axis] {
				full = append(full, 1)
				if t.integer("keepdims", 1) != 0 {
					kept = append(kept, 1)
				}
				continue
			}
			full, kept = append(full, extent), append(kept, extent)
		}
		x, err := t.operand(0)
		if err != nil {
			return nil, err
		}
		if x.array != nil {
			y, err := reduced(x.array, full, start, fold, finish)
			if err != nil {
				return nil, err
			}
			return []value{{array: y.reshaped(kept)}}, nil
		}
		if combine == nil {
			return nil, errors.New("it is supported for shapes and constants only")
		}
		if each {
			x.node, over = t.view(x.node, append(slices.Clone(shape), 1)), append(over, true)
		}
		y, err := combine(t, x.node, over)
		if err != nil {
			return nil, err
		}
		return []value{{node: t.view(y, kept)}}, t.b.Err()
	}
}

// reduced combines the elements of a over the axes that have extent 1 in shape.
func reduced(a *ndarray, shape []int, start float64, fold func(total, x float64) float64, finish func(total float64, n int) float64) (*ndarray, error) {
	y, err := newArray(a.kind, shape)
	if err != nil {
		return nil, err
	}
	for i := range y.values {
		y.values[i] = start
	}
	strides, index := broadcastStrides(shape, a.shape), make([]int, len(a.shape))
	for _, v := range a.values {
		at := 0
		for axis, i := range index {
			at += i * strides[axis]
		}
		y.values[at] = fold(y.values[at], v)
		advance(index, a.shape)
	}
	for i, v := range y.values {
		y.values[i] = finish(v, len(a.values)/max(1, len(y.values)))
	}
	return y, nil
}
