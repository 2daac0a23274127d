package onnx

import (
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// label names an axis in the equation of an Einsum: a letter or, for the axes of an ellipsis, -1
// for the last one, -2 for the one before it, and so on.
type label int

// term is an operand of an Einsum, or a product of some, with a label per axis.
type term struct {
	node   *graph.Node
	labels []label
}

// einsum translates Einsum: operands are multiplied from first to last, and each product sums over
// the labels that neither later operands nor the output have.
func einsum(t *translator) ([]value, error) {
	operands, output, err := t.equation()
	if err != nil {
		return nil, err
	}
	terms := make([]term, len(operands))
	for i, labels := range operands {
		x, err := t.x(i)
		if err != nil {
			return nil, err
		}
		if terms[i], err = t.diagonal(term{x, labels}); err != nil {
			return nil, err
		}
	}
	y := terms[0]
	for i, next := range terms[1:] {
		kept := slices.Concat(append([][]label{output}, operands[i+2:]...)...)
		if y, err = t.multiplied(y, next, kept); err != nil {
			return nil, err
		}
	}
	y = t.summed(y, func(l label) bool { return !slices.Contains(output, l) })
	turned, err := t.ordered(y, output)
	return []value{{node: turned}}, err
}

// equation returns the labels of the operands and of the output.
func (t *translator) equation() (operands [][]label, output []label, err error) {
	text := strings.ReplaceAll(t.text("equation", ""), " ", "")
	left, right, explicit := strings.Cut(text, "->")
	parts := strings.Split(left, ",")
	if len(parts) != len(t.inputs) {
		return nil, nil, errors.Errorf("equation %q must have an operand for each of %d inputs", text, len(t.inputs))
	}
	widest, times := 0, map[label]int{}
	for i, part := range parts {
		shape, err := t.anyShape(i)
		if err != nil {
			return nil, nil, err
		}
		named := len(strings.Replace(part, "...", "", 1))
		labels, ok := labelsOf(part, len(shape)-named)
		if !ok {
			return nil, nil, errors.Errorf("%q in equation %q does not fit shape %v", part, text, shape)
		}
		operands, widest = append(operands, labels), max(widest, len(shape)-named)
		for _, l := range labels {
			times[l]++
		}
	}
	if !explicit { // labels that occur once, in alphabetic order
		right = "..."
		for _, l := range slices.Sorted(maps.Keys(times)) {
			if l > 0 && times[l] == 1 {
				right += string(rune(l))
			}
		}
	}
	if !strings.Contains(right, "...") {
		widest = 0
	}
	output, ok := labelsOf(right, widest)
	for i, l := range output {
		ok = ok && times[l] > 0 && !slices.Contains(output[:i], l)
	}
	if !ok {
		return nil, nil, errors.Errorf("the output of equation %q must have labels of its operands, each once", text)
	}
	return operands, output, nil
}

// labelOf returns the label of an axis of input i.
func (t *translator) labelOf(i, axis int) int {
	operands, _, err := t.equation()
	if err != nil {
		return 0 // the translation of the node has failed
	}
	return int(operands[i][axis])
}

// summedElements returns the number of elements of operand i, of the given shape, that an element
// of the output is a sum over. An equation that does not fit is an error later.
func summedElements(equation string, i int, shape []int) int {
	left, right, explicit := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	parts, n := strings.Split(left, ","), 1
	if i >= len(parts) {
		return n
	}
	for axis, l := range parts[i] {
		if axis < len(shape) && (explicit && !strings.ContainsRune(right, l) || !explicit && strings.Count(left, string(l)) > 1) {
			n *= shape[axis]
		}
	}
	return n
}

// labelsOf returns the labels in the text of an operand, whose ellipsis has the given number of
// axes. ok is false if the text is malformed, or if it has no ellipsis for these axes.
func labelsOf(text string, ellipsis int) (labels []label, ok bool) {
	before, after, found := strings.Cut(text, "...")
	if ellipsis < 0 || !found && ellipsis > 0 {
		return nil, false
	}
	for _, r := range before {
		labels = append(labels, label(r))
	}
	for k := ellipsis; k > 0; k-- {
		labels = append(labels, label(-k))
	}
	for _, r := range after {
		labels = append(labels, label(r))
	}
	malformed := strings.ContainsFunc(before+after, func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') })
	return labels, !malformed
}

// diagonal returns x with each label once: of axes with the same label, it has the diagonal.
func (t *translator) diagonal(x term) (term, error) {
	for second, l := range x.labels {
		first := slices.Index(x.labels, l)
		if first == second {
			continue
		}
		shape := graph.ShapeOf(x.node)
		n := shape[first]
		if shape[second] != n {
			return term{}, errors.Errorf("axes %d and %d of shape %v have the same label and must have the same extent", first, second, shape)
		}
		others := slices.DeleteFunc(span(0, 1, len(shape)), func(axis int) bool { return axis == first || axis == second })
		turned, err := t.transposed(value{node: x.node}, append(others, first, second))
		if err != nil {
			return term{}, err
		}
		outer := graph.ShapeOf(turned.node)[:len(others)]
		squares := t.view(turned.node, append(slices.Clone(outer), n*n))
		taken, err := t.take(value{node: squares}, len(outer), span(0, n+1, n))
		if err != nil {
			return term{}, err
		}
		labels := make([]label, len(others))
		for i, axis := range others {
			labels[i] = x.labels[axis]
		}
		return t.diagonal(term{taken.node, append(labels, l)})
	}
	return x, nil
}

// summed returns x summed over the axes whose labels are to go.
func (t *translator) summed(x term, gone func(l label) bool) term {
	var axes []int
	for axis, l := range x.labels {
		if gone(l) {
			axes = append(axes, axis)
		}
	}
	if len(axes) == 0 {
		return x
	}
	labels := slices.DeleteFunc(slices.Clone(x.labels), gone)
	shape := make([]int, len(labels))
	for i, l := range labels {
		shape[i] = graph.ShapeOf(x.node)[slices.Index(x.labels, l)]
	}
	return term{t.view(t.b.Apply(op.Sum{Axes: op.AxesOf(axes...)}, x.node), shape), labels}
}

// ordered returns the node of x with its axes in the order of labels, which are its own.
func (t *translator) ordered(x term, labels []label) (*graph.Node, error) {
	axes := make([]int, len(labels))
	for i, l := range labels {
		axes[i] = slices.Index(x.labels, l)
	}
	turned, err := t.transposed(value{node: x.node}, axes)
	return turned.node, err
}

// multiplied returns the product of x and y, summed over the labels that are not kept.
func (t *translator) multiplied(x, y term, kept []label) (term, error) {
	isKept := func(l label) bool { return slices.Contains(kept, l) }
	x = t.summed(x, func(l label) bool { return !isKept(l) && !slices.Contains(y.labels, l) })
	y = t.summed(y, func(l label) bool { return !isKept(l) && !slices.Contains(x.labels, l) })
	if t.b.Err() != nil {
		return term{}, t.b.Err()
	}
	size, err := extentsOf(x, y)
	if err != nil {
		return term{}, err
	}
	var pairs, rows, inner, columns []label // the product is [pairs rows inner] [pairs inner columns]
	for _, l := range x.labels {
		switch shared := slices.Contains(y.labels, l); {
		case shared && isKept(l):
			pairs = append(pairs, l)
		case shared:
			inner = append(inner, l)
		default:
			rows = append(rows, l)
		}
	}
	for _, l := range y.labels {
		if !slices.Contains(x.labels, l) {
			columns = append(columns, l)
		}
	}
	a, transposeA, err := t.matrices(x, size, pairs, rows, inner)
	if err != nil {
		return term{}, err
	}
	b, transposeB, err := t.matrices(y, size, pairs, inner, columns)
	if err != nil {
		return term{}, err
	}
	var multiply graph.Op = op.MatMul{TransposeA: transposeA, TransposeB: transposeB}
	switch {
	case len(inner) == 0: // one column times one row
		multiply = op.Multiply{}
	case len(pairs) > 0:
		multiply = op.BatchMatMul{TransposeA: transposeA, TransposeB: transposeB}
	}
	labels := slices.Concat(pairs, rows, columns)
	return term{t.view(t.b.Apply(multiply, a, b), size.of(labels)), labels}, t.b.Err()
}

// matrices returns an operand as a matrix with the given labels as rows and columns or, if it has
// labels of pairs, as [pairs rows columns]. Matrices are transposed if that saves moving elements.
func (t *translator) matrices(x term, size extents, pairs, rows, columns []label) (node *graph.Node, transposed bool, err error) {
	if !slices.Equal(x.labels, slices.Concat(pairs, rows, columns)) && slices.Equal(x.labels, slices.Concat(pairs, columns, rows)) {
		rows, columns, transposed = columns, rows, true
	}
	order := slices.Concat(pairs, rows, columns)
	if node, err = t.ordered(x, order); err != nil {
		return nil, false, err
	}
	if node, err = t.expanded(node, size.of(order)); err != nil {
		return nil, false, err
	}
	matrix := []int{product(size.of(rows)), product(size.of(columns))}
	if len(pairs) > 0 {
		matrix = slices.Insert(matrix, 0, product(size.of(pairs)))
	}
	return t.view(node, matrix), transposed, t.b.Err()
}

// extents has the extent of each label.
type extents map[label]int

// extentsOf returns the extents of the labels of two terms. An axis of extent 1 broadcasts.
func extentsOf(x, y term) (extents, error) {
	size := extents{}
	for _, operand := range []term{x, y} {
		for axis, extent := range graph.ShapeOf(operand.node) {
			l := operand.labels[axis]
			if have := size[l]; have > 1 && extent > 1 && have != extent {
				return nil, errors.Errorf("axes with the same label must have the same extent, got %d and %d", have, extent)
			}
			size[l] = max(size[l], extent)
		}
	}
	return size, nil
}

// of returns the extents of some labels.
func (e extents) of(labels []label) []int {
	shape := make([]int, len(labels))
	for i, l := range labels {
		shape[i] = e[l]
	}
	return shape
}
