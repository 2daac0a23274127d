package stock

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// product translates products of matrices and vectors. In a network, the axis of the examples may
// only be the rows of the first factor, or an axis of both in a batched product.
func (t *translator) product(m *nodeInfo) *graph.Node {
	x, y := m.inputs[0], m.inputs[1]
	transposeA, transposeB := m.bool("transA"), m.bool("transB")
	kind := product(m.int("āBinaryOperator"))
	if kind != batchedProduct && (t.hasBatchAxis(y) || t.hasBatchAxis(x) && (transposeA || kind == innerProduct)) &&
		t.refuseMixing(m, "it multiplies examples with each other") {
		return nil
	}
	switch kind {
	case matrixProduct:
		return t.matrices(x, y, transposeA, transposeB)
	case matrixByVector:
		a, v := t.visit(x), t.visit(y)
		return t.apply(op.MatMul{TransposeA: transposeA}, a, t.column(v))
	case innerProduct:
		a, b := t.visit(x), t.visit(y)
		return t.apply(op.MatMul{TransposeA: true}, t.column(a), t.column(b))
	case outerProduct:
		a, b := t.visit(x), t.visit(y)
		return t.apply(op.MatMul{TransposeB: true}, t.column(a), t.column(b))
	// Examples are not mixed: each pair of matrices has its own product.
	case batchedProduct:
		return t.pairs(x, y, op.BatchMatMul{TransposeA: transposeA, TransposeB: transposeB})
	}
	return nil
}

// pairs translates the product of many pairs of matrices, the last two axes: [... M K] by [... K
// N]. The axes before are merged into one.
func (t *translator) pairs(x, y *gorgonia.Node, o op.BatchMatMul) *graph.Node {
	a, b := t.visit(x), t.visit(y)
	if t.b.Err() != nil {
		return nil
	}
	return t.apply(o, t.view(a, matricesOf(graph.ShapeOf(a))), t.view(b, matricesOf(graph.ShapeOf(b))))
}

// matricesOf returns a shape with all axes except the last two merged.
func matricesOf(shape tensor.Shape) tensor.Shape {
	last := len(shape) - 2
	return tensor.Shape{tensor.Shape(shape[:last]).Elements(), shape[last], shape[last+1]}
}

// column returns a vector as a matrix with one column: Pollen multiplies only matrices. visit gives
// the product the shape of Gorgonia's result.
func (t *translator) column(x *graph.Node) *graph.Node {
	return t.view(x, tensor.Shape{graph.ShapeOf(x).Elements(), 1})
}

// matrices translates a product of matrices. A transposition of the second factor becomes an
// attribute of the product, which reads the matrix in either order without a copy.
func (t *translator) matrices(x, y *gorgonia.Node, transposeA, transposeB bool) *graph.Node {
	if inner := t.untransposed(y); inner != nil {
		y, transposeB = inner, !transposeB
	}
	a := t.visit(x)
	return t.apply(op.MatMul{TransposeA: transposeA, TransposeB: transposeB}, a, t.visit(y))
}

// untransposed returns the matrix whose transpose n is, or nil.
func (t *translator) untransposed(n *gorgonia.Node) *gorgonia.Node {
	if m := t.info[n]; m.is("transposeOp") && m.Dims() == 2 {
		return m.inputs[0]
	}
	return nil
}

// transpose translates a permutation of axes. Gorgonia's Conv2d ends with one, and then the whole
// convolution is translated.
func (t *translator) transpose(m *nodeInfo) *graph.Node {
	if conv := t.convolution(m); conv != nil || t.b.Err() != nil {
		return conv
	}
	pattern := m.ints("pattern")
	if pattern[0] != 0 && t.batched[m.Node] && t.refuseMixing(m, "it moves the axis of the examples") {
		return nil
	}
	return t.apply(array.TransposeBy(pattern...), t.visit(m.inputs[0]))
}

// convolution returns the convolution that ends in m, or nil. gorgonia.Conv2d makes
//
//	Transpose(Reshape(Reshape(Im2Col(x)) Reshape(filter)'), 0, 3, 1, 2)
//
// a matrix product of patches with the filter, [B P Q K], transposed to [B K P Q]. Every node of
// the pattern is checked, and the filter's shape, too: a program may multiply patches in another
// way, which is not a convolution. Such a program is refused at its Im2Col.
func (t *translator) convolution(m *nodeInfo) *graph.Node {
	if fmt.Sprint(m.ints("pattern")) != "[0 3 1 2]" {
		return nil
	}
	// From the outside in: m is the transposition of images, [B P Q K].
	images := t.info[m.inputs[0]]
	if !images.is("reshapeOp") {
		return nil
	}
	multiplied := t.info[images.inputs[0]]
	if !multiplied.is("linAlgBinOp") || product(multiplied.int("āBinaryOperator")) != matrixProduct ||
		multiplied.bool("transA") || !multiplied.bool("transB") {
		return nil
	}
	patches, filter := t.info[multiplied.inputs[0]], t.info[multiplied.inputs[1]]
	if !patches.is("reshapeOp") || !filter.is("reshapeOp") {
		return nil
	}
	columns, weights := t.info[patches.inputs[0]], t.info[filter.inputs[0]]
	if !columns.is("im2colOp") || weights.Dims() != 4 {
		return nil
	}
	// x is [B C H W], w [K C h w] and y [B K P Q].
	x, w, y := tensor.Shape(columns.inputs[0].Shape()), weights.Shape(), m.Shape()
	if w[1] != x[1] || w[2] != columns.int("h") || w[3] != columns.int("w") || y[0] != x[0] || y[1] != w[0] {
		return nil
	}
	// Nodes whose inputs were merged are merged, too.
	used := max(t.userCount(columns), t.userCount(patches), t.userCount(multiplied), t.userCount(images), t.userCount(m))
	if used > 1 && hidesDilation(columns, x) {
		return t.refuse(columns, "it is used twice, and may be convolutions of different dilation, which Gorgonia takes for one",
			"apply one of the convolutions to a Reshape of the input to its own shape")
	}
	if t.hasBatchAxis(weights.Node) && t.refuseMixing(m, "its filter depends on the examples") {
		return nil
	}
	in := t.visit(columns.inputs[0])
	return t.apply(op.Conv2D{
		Stride:   [2]int{columns.int("strideH"), columns.int("strideW")},
		Padding:  [2]int{columns.int("padH"), columns.int("padW")},
		Dilation: [2]int{columns.int("dilationH"), columns.int("dilationW")},
	}, in, t.visit(weights.Node))
}

// hidesDilation reports whether the columns of images x would have the same shape with another
// dilation: Gorgonia's hash does not contain it.
func hidesDilation(columns *nodeInfo, x tensor.Shape) bool {
	for i, axis := range []string{"H", "W"} {
		size, taps := x[2+i]+2*columns.int("pad"+axis), columns.int([]string{"h", "w"}[i])
		count := func(dilation int) int { return (size - dilation*(taps-1) - 1) / columns.int("stride"+axis) }
		own := columns.int("dilation" + axis)
		for other := 1; taps > 1 && other*(taps-1) < size; other++ {
			if other != own && count(other) == count(own) {
				return true
			}
		}
	}
	return false
}

// reshape translates a Reshape. The elements of an example stay together, as in memory. In a
// network the first axis must remain a multiple of the batch, so that it scales with it.
func (t *translator) reshape(m *nodeInfo) *graph.Node {
	x := t.visit(m.inputs[0])
	if x == nil {
		return nil
	}
	if to := m.Shape(); t.batch > 0 && t.batched[m.Node] && (len(to) == 0 || to[0]%t.graphBatch != 0) {
		t.refuseMixing(m, fmt.Sprintf("it gives a batch of %d the shape %v", t.graphBatch, to))
		return nil
	}
	return t.view(x, t.shape(m.Node))
}
