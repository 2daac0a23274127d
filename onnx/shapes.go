package onnx

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// operand is input i as it is: an array if its values are known and it is not a sampled weight,
// otherwise a node.
func (t *translator) operand(i int) (value, error) {
	if !t.has(i) {
		return value{}, errors.Errorf("input %d is missing", i)
	}
	name := t.inputs[i]
	if v, ok := t.values[name]; ok {
		if v.array != nil {
			return value{array: v.array}, nil
		}
		return v, nil
	}
	if w := t.model.tensors[name]; w == nil || t.constantWeight(w) {
		if w == nil {
			return value{}, errors.Errorf("no node makes the value %q", name)
		}
		return value{array: w.array()}, nil
	}
	node, err := t.x(i)
	return value{node: node}, err
}

func (v value) shape() []int {
	if v.array != nil {
		return v.array.shape
	}
	return graph.ShapeOf(v.node)
}

// moved is the translation of an operator that only rearranges the elements of its first input:
// known values are rearranged at once. arrange returns the rearranged value.
func moved(arrange func(t *translator, x value) (value, error)) translation {
	return func(t *translator) ([]value, error) {
		x, err := t.operand(0)
		if err != nil {
			return nil, err
		}
		y, err := arrange(t, x)
		return []value{y}, err
	}
}

func (t *translator) reshaped(x value, shape []int) (value, error) {
	if product(shape) != product(x.shape()) {
		return value{}, errors.Errorf("shape %v must have the elements of %v", shape, x.shape())
	}
	if x.array != nil {
		return value{array: x.array.reshaped(shape)}, nil
	}
	return value{node: t.view(x.node, shape)}, t.b.Err()
}

func reshape(t *translator, x value) (value, error) {
	target, ok, err := t.integersOf("shape", 1)
	if err != nil || !ok {
		return value{}, errors.WithMessage(err, "reshape needs a shape")
	}
	from := x.shape()
	shape, open := slices.Clone(target), -1
	for i, extent := range shape {
		switch {
		case extent == 0 && t.integer("allowzero", 0) == 0:
			if i >= len(from) {
				return value{}, errors.Errorf("shape %v copies axis %d of %v, which has none", target, i, from)
			}
			shape[i] = from[i]
		case extent == -1:
			if open >= 0 {
				return value{}, errors.Errorf("shape %v must leave one extent open, not several", target)
			}
			open = i
		}
	}
	// A model that was exported for a fixed batch has its size among the constants.
	if x.node != nil && len(shape) > 0 && len(from) > 0 && target[0] == t.fixedBatch && t.fixedBatch != t.batch && from[0] == t.batch && t.fixedBatch > 0 {
		shape[0] = t.batch
	}
	if open >= 0 {
		shape[open] = 1
		rest := product(shape)
		if rest <= 0 || product(from)%rest != 0 {
			return value{}, errors.Errorf("shape %v does not divide the elements of %v", target, from)
		}
		shape[open] = product(from) / rest
	}
	return t.reshaped(x, shape)
}

func flatten(t *translator, x value) (value, error) {
	axis, err := t.axis(t.integer("axis", 1), len(x.shape()), true)
	if err != nil {
		return value{}, err
	}
	return t.reshaped(x, []int{product(x.shape()[:axis]), product(x.shape()[axis:])})
}

func squeeze(t *translator, x value) (value, error) {
	axes, given, err := t.integersOf("axes", 1)
	if err != nil {
		return value{}, err
	}
	drop := map[int]bool{}
	for _, axis := range axes {
		at, err := t.axis(axis, len(x.shape()), false)
		if err != nil {
			return value{}, err
		}
		drop[at] = true
	}
	shape := []int{}
	for axis, extent := range x.shape() {
		if drop[axis] && extent != 1 {
			return value{}, errors.Errorf("axis %d of shape %v must have extent 1", axis, x.shape())
		}
		if given && !drop[axis] || !given && extent != 1 {
			shape = append(shape, extent)
		}
	}
	return t.reshaped(x, shape)
}

func unsqueeze(t *translator, x value) (value, error) {
	axes, _, err := t.integersOf("axes", 1)
	if err != nil {
		return value{}, err
	}
	shape := make([]int, len(x.shape())+len(axes))
	for _, axis := range axes {
		at, err := t.axis(axis, len(shape), false)
		if err != nil {
			return value{}, err
		}
		if shape[at] == 1 {
			return value{}, errors.Errorf("axes %v must differ", axes)
		}
		shape[at] = 1
	}
	rest := x.shape()
	for i := range shape {
		if shape[i] == 0 {
			shape[i], rest = rest[0], rest[1:]
		}
	}
	return t.reshaped(x, shape)
}

func transpose(t *translator, x value) (value, error) {
	n := len(x.shape())
	axes, given, err := t.integersOf("perm", -1)
	if err != nil {
		return value{}, err
	}
	if !given {
		for i := range n {
			axes = append(axes, n-1-i)
		}
	}
	sorted := slices.Sorted(slices.Values(axes))
	for i := range max(n, len(axes)) {
		if i >= len(sorted) || sorted[i] != i || len(axes) != n {
			return value{}, errors.Errorf("perm must be a permutation of %d axes, got %v", n, axes)
		}
	}
	return t.transposed(x, axes)
}

func (t *translator) transposed(x value, axes []int) (value, error) {
	if x.array != nil {
		y, err := x.array.transposed(axes)
		return value{array: y}, err
	}
	if slices.IsSorted(axes) {
		return x, nil
	}
	return value{node: t.b.Apply(array.TransposeBy(axes...), x.node)}, t.b.Err()
}

// take returns the elements at the given indices of an axis.
func (t *translator) take(x value, axis int, indices []int) (value, error) {
	extent := x.shape()[axis]
	for _, i := range indices {
		if i < 0 || i >= extent {
			return value{}, errors.Errorf("indices on axis %d of shape %v must be below %d, got %d", axis, x.shape(), extent, i)
		}
	}
	if x.array != nil {
		y, err := x.array.take(axis, indices)
		return value{array: y}, err
	}
	var parts []*graph.Node
	for from := 0; from < len(indices); {
		count, step := run(indices[from:])
		part := array.Slice{Axis: axis, Start: indices[from], Step: step, Count: count}
		node := x.node
		if part.Count != extent || part.Step != 1 {
			node = t.b.Apply(part, node)
		}
		parts, from = append(parts, node), from+count
	}
	return t.concatenated(parts, axis)
}

// run returns how many of the first indices are equally far apart, in rising order, and how far.
func run(indices []int) (count, step int) {
	if len(indices) == 1 || indices[1] <= indices[0] {
		return 1, 1
	}
	step = indices[1] - indices[0]
	for count = 2; count < len(indices) && indices[count]-indices[count-1] == step; {
		count++
	}
	return count, step
}

// concatenated joins nodes along an axis: each is put among zeros, and the results are added.
func (t *translator) concatenated(parts []*graph.Node, axis int) (value, error) {
	if len(parts) == 0 {
		return value{}, errors.New("the result must have at least one element")
	}
	total := 0
	for _, p := range parts {
		shape := graph.ShapeOf(p)
		if len(shape) != len(graph.ShapeOf(parts[0])) || axis >= len(shape) {
			return value{}, errors.Errorf("shapes %v and %v do not join on axis %d", graph.ShapeOf(parts[0]), shape, axis)
		}
		total += shape[axis]
	}
	var sum *graph.Node
	at := 0
	for _, p := range parts {
		extent := graph.ShapeOf(p)[axis]
		placed := p
		if extent != total {
			placed = t.b.Apply(array.Unslice{Slice: array.Slice{Axis: axis, Start: at, Step: 1, Count: extent}, Extent: total}, p)
		}
		if at += extent; sum == nil {
			sum = placed
		} else {
			sum = t.b.Apply(op.Add{}, sum, placed)
		}
	}
	return value{node: sum}, t.b.Err()
}

func concat(t *translator) ([]value, error) {
	if err := t.needs(len(t.inputs)); err != nil {
		return nil, err
	}
	first, err := t.operand(0)
	if err != nil {
		return nil, err
	}
	axis, err := t.axis(t.integer("axis", 0), len(first.shape()), false)
	if err != nil {
		return nil, err
	}
	if inputs, ok := t.folded(); ok {
		y, err := joined(inputs, axis)
		return []value{{array: y}}, err
	}
	var parts []*graph.Node
	for i := range t.inputs {
		x, err := t.x(i)
		if err != nil {
			return nil, err
		}
		parts = append(parts, x)
	}
	y, err := t.concatenated(parts, axis)
	return []value{y}, err
}

// joined concatenates known values.
func joined(parts []*ndarray, axis int) (*ndarray, error) {
	shape := slices.Clone(parts[0].shape)
	shape[axis] = 0
	for _, p := range parts {
		if len(p.shape) != len(shape) {
			return nil, errors.Errorf("shapes %v and %v do not join", parts[0].shape, p.shape)
		}
		for i, extent := range p.shape {
			if i != axis && extent != shape[i] {
				return nil, errors.Errorf("shapes %v and %v do not join on axis %d", parts[0].shape, p.shape, axis)
			}
		}
		shape[axis] += p.shape[axis]
	}
	y, err := newArray(parts[0].kind, shape)
	if err != nil {
		return nil, err
	}
	at, width := 0, product(shape[axis:])
	for _, p := range parts {
		own := product(p.shape[axis:])
		for o := range product(shape[:axis]) {
			copy(y.values[o*width+at:], p.values[o*own:][:own])
		}
		at += own
	}
	return y, nil
}

func split(t *translator) ([]value, error) {
	x, err := t.operand(0)
	if err != nil {
		return nil, err
	}
	axis, err := t.axis(t.integer("axis", 0), len(x.shape()), false)
	if err != nil {
		return nil, err
	}
	sizes, given, err := t.integersOf("split", 1)
	if err != nil {
		return nil, err
	}
	extent, parts := x.shape()[axis], len(t.outputs)
	if !given {
		each := (extent + parts - 1) / parts
		for left := extent; left > 0; left -= each {
			sizes = append(sizes, min(each, left))
		}
	}
	if total := sum(sizes); total != extent || len(sizes) != parts || slices.Min(sizes) < 1 {
		return nil, errors.Errorf("%d outputs must have the %d elements of axis %d between them, got sizes %v", parts, extent, axis, sizes)
	}
	var made []value
	at := 0
	for _, size := range sizes {
		y, err := t.take(x, axis, span(at, 1, size))
		if err != nil {
			return nil, err
		}
		made, at = append(made, y), at+size
	}
	return made, nil
}

func sum(v []int) (total int) {
	for _, x := range v {
		total += x
	}
	return total
}

// span returns count integers from first on, step apart.
func span(first, step, count int) []int {
	v := make([]int, count)
	for i := range v {
		v[i] = first + i*step
	}
	return v
}

func slice(t *translator, x value) (value, error) {
	starts, _, err := t.integersOf("starts", 1)
	if err != nil {
		return value{}, err
	}
	ends, _, err := t.integersOf("ends", 2)
	if err != nil {
		return value{}, err
	}
	axes, given, err := t.integersOf("axes", 3)
	if err != nil {
		return value{}, err
	}
	if !given {
		axes = span(0, 1, len(starts))
	}
	steps, given, err := t.integersOf("steps", 4)
	if err != nil {
		return value{}, err
	}
	if !given {
		steps = slices.Repeat([]int{1}, len(starts))
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
		return value{}, errors.Errorf("starts, ends, axes and steps must be of one length, got %v, %v, %v, %v", starts, ends, axes, steps)
	}
	for i := range starts {
		axis, err := t.axis(axes[i], len(x.shape()), false)
		if err != nil {
			return value{}, err
		}
		indices, err := sliceIndices(starts[i], ends[i], steps[i], x.shape()[axis])
		if err != nil {
			return value{}, err
		}
		if x, err = t.take(x, axis, indices); err != nil {
			return value{}, err
		}
	}
	return x, nil
}

// sliceIndices returns what [start:end:step] selects of an axis, as in Python.
func sliceIndices(start, end, step, extent int) ([]int, error) {
	if step == 0 {
		return nil, errors.New("steps must not be 0")
	}
	low, high := 0, extent
	if step < 0 {
		low, high = -1, extent-1
	}
	within := func(i int) int {
		if i < 0 {
			i += extent
		}
		return max(low, min(high, i))
	}
	from, to := within(start), within(end)
	if count := (to - from + step - sign(step)) / step; count > 0 {
		return span(from, step, count), nil
	}
	return nil, nil
}

func sign(v int) int {
	if v < 0 {
		return -1
	}
	return 1
}

func gather(t *translator, x value) (value, error) {
	axis, err := t.axis(t.integer("axis", 0), len(x.shape()), false)
	if err != nil {
		return value{}, err
	}
	indices, known := t.known(1)
	if !known {
		return value{}, errors.New("the indices must be constant or follow from shapes")
	}
	at := indices.integers()
	for i, v := range at {
		if v < 0 {
			at[i] += x.shape()[axis]
		}
	}
	shape := slices.Concat(x.shape()[:axis], indices.shape, x.shape()[axis+1:])
	y, err := t.take(x, axis, at)
	if err != nil {
		return value{}, err
	}
	return t.reshaped(y, shape)
}

func expand(t *translator, x value) (value, error) {
	target, ok, err := t.integersOf("shape", 1)
	if err != nil || !ok {
		return value{}, errors.WithMessage(err, "expand needs a shape")
	}
	shape, err := broadcastShape(x.shape(), target)
	if err != nil {
		return value{}, err
	}
	if x.array == nil {
		y, err := t.expanded(x.node, shape)
		return value{node: y}, err
	}
	y, err := broadcast(x.array, &ndarray{shape: target, values: make([]float64, product(target))}, x.array.kind,
		func(v, _ float64) float64 { return v })
	return value{array: y}, err
}

func tile(t *translator, x value) (value, error) {
	repeats, _, err := t.integersOf("repeats", 1)
	if err != nil {
		return value{}, err
	}
	if len(repeats) != len(x.shape()) || len(repeats) > 0 && (slices.Min(repeats) < 1 || slices.Max(repeats) > maxFolded) {
		return value{}, errors.Errorf("repeats must be at least 1 for each axis of %v, got %v", x.shape(), repeats)
	}
	for axis, times := range repeats {
		if times == 1 {
			continue
		}
		extent := x.shape()[axis]
		if _, err := elements([]int{extent, times}); err != nil || extent*times > maxFolded {
			return value{}, errors.Errorf("repeats %v make shape %v too large", repeats, x.shape())
		}
		if x, err = t.take(x, axis, slices.Repeat(span(0, 1, extent), times)); err != nil {
			return value{}, err
		}
	}
	return x, nil
}

func pad(t *translator, x value) (value, error) {
	axes := len(x.shape())
	pads, _, err := t.integersOf("pads", 1)
	if err != nil {
		return value{}, err
	}
	along := span(0, 1, axes)
	if t.has(3) {
		if along, _, err = t.integersOf("axes", 3); err != nil {
			return value{}, err
		}
	}
	if len(pads) != 2*len(along) {
		return value{}, errors.Errorf("pads must have two numbers for each of %d axes, got %v", len(along), pads)
	}
	before, after := make([]int, axes), make([]int, axes)
	for i, axis := range along {
		at, err := t.axis(axis, axes, false)
		if err != nil {
			return value{}, err
		}
		before[at], after[at] = pads[i], pads[i+len(along)]
	}
	fill, err := t.number("value", 2, 0)
	if err != nil {
		return value{}, err
	}
	mode := t.text("mode", "constant")
	for axis := range axes {
		if before[axis] == 0 && after[axis] == 0 {
			continue
		}
		if x, err = t.padded(x, axis, before[axis], after[axis], mode, fill); err != nil {
			return value{}, err
		}
	}
	return x, nil
}

// padded extends an axis on both sides; negative numbers crop it.
func (t *translator) padded(x value, axis, before, after int, mode string, fill float64) (value, error) {
	extent := x.shape()[axis]
	if total := extent + before + after; total < 1 || max(abs(before), abs(after)) > maxFolded {
		return value{}, errors.Errorf("pads %d and %d of axis %d of shape %v leave nothing, or are too large", before, after, axis, x.shape())
	}
	indices := span(-before, 1, extent+before+after)
	if mode == "constant" && (before > 0 || after > 0) {
		return t.filled(x, axis, before, after, fill)
	}
	for k, i := range indices {
		switch mode {
		case "constant": // only crops
		case "edge":
			i = max(0, min(extent-1, i))
		case "wrap":
			i = ((i % extent) + extent) % extent
		case "reflect":
			if extent == 1 {
				i = 0
				break
			}
			period := 2 * (extent - 1)
			if i = ((i % period) + period) % period; i >= extent {
				i = period - i
			}
		default:
			return value{}, errors.Errorf("mode must be constant, reflect, edge or wrap, got %q", mode)
		}
		indices[k] = i
	}
	return t.take(x, axis, indices)
}

// filled pads an axis with a number.
func (t *translator) filled(x value, axis, before, after int, fill float64) (value, error) {
	extent := x.shape()[axis]
	if before < 0 || after < 0 { // crop that side first
		cropped := span(max(0, -before), 1, extent-max(0, -before)-max(0, -after))
		var err error
		if x, err = t.take(x, axis, cropped); err != nil {
			return value{}, err
		}
		extent, before, after = len(cropped), max(0, before), max(0, after)
	}
	total := before + extent + after
	margin := make([]int, len(x.shape()))
	for i := range margin {
		margin[i] = 1
	}
	margin[axis] = total
	edges := &ndarray{margin, Float32, make([]float64, total)}
	for i := range total {
		if i < before || i >= before+extent {
			edges.values[i] = fill
		}
	}
	if x.array != nil {
		side := func(count int) *ndarray {
			shape := slices.Clone(x.shape())
			shape[axis] = count
			return &ndarray{shape, x.array.kind, slices.Repeat([]float64{fill}, product(shape))}
		}
		y, err := joined([]*ndarray{side(before), x.array, side(after)}, axis)
		return value{array: y}, err
	}
	y := t.b.Apply(array.Unslice{Slice: array.Slice{Axis: axis, Start: before, Step: 1, Count: extent}, Extent: total}, x.node)
	if fill != 0 {
		mask, err := t.constant(edges)
		if err != nil {
			return value{}, err
		}
		y = t.b.Apply(op.Add{}, y, mask)
	}
	return value{node: y}, t.b.Err()
}

func abs(v int) int { return max(v, -v) }

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

// anyShape returns the shape of input i without making a node of it.
func (t *translator) anyShape(i int) ([]int, error) {
	if !t.has(i) {
		return nil, errors.Errorf("input %d is missing", i)
	}
	if v, ok := t.values[t.inputs[i]]; ok {
		return v.shape(), nil
	}
	return t.model.tensors[t.inputs[i]].Shape, nil
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
	shape, ok, err := t.integersOf("shape", 0)
	if err != nil || !ok {
		return nil, errors.WithMessage(err, "it needs a shape")
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
	inputs, ok := t.folded()
	if !ok || len(inputs) != 3 {
		return nil, errors.New("start, limit and delta must be constant or follow from shapes")
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

// where selects between two values: c x + (1 - c) y, where the condition c is 0 or 1. An infinity
// that is not selected makes NaN of an image; values that are known are selected exactly.
func where(t *translator) ([]value, error) {
	if err := t.needs(3); err != nil {
		return nil, err
	}
	if inputs, ok := t.folded(); ok {
		y, err := selected(inputs[0], inputs[1], inputs[2])
		return []value{{array: y}}, err
	}
	var in [3]*graph.Node
	for i := range in {
		var err error
		if in[i], err = t.x(i); err != nil {
			return nil, err
		}
	}
	chosen := t.b.Apply(op.Multiply{}, in[0], in[1])
	other := t.b.Apply(op.Multiply{}, t.scaled(in[0], -1, 1), in[2])
	return []value{{node: t.b.Apply(op.Add{}, chosen, other)}}, t.b.Err()
}

// selected returns x where the condition is not 0, else y.
func selected(condition, x, y *ndarray) (*ndarray, error) {
	// Where the condition holds, NaN marks the place of an element of x.
	marked, err := broadcast(y, condition, y.kind, func(y, c float64) float64 {
		if c != 0 {
			return math.NaN()
		}
		return y
	})
	if err != nil {
		return nil, err
	}
	return broadcast(marked, x, x.kind, func(y, x float64) float64 {
		if math.IsNaN(y) {
			return x
		}
		return y
	})
}

// dropout is the identity, as in inference, with a mask of ones.
func dropout(t *translator) ([]value, error) {
	if training, ok := t.known(2); ok && training.values[0] != 0 {
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
