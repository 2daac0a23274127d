package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// BatchMatMul is a matrix product for each of B pairs, c[i] = op(a[i]) op(b[i]), where op is the
// identity or a transposition: a [B M N] or, with TransposeA, [B N M], b [B N O] or, with
// TransposeB, [B O N] -> c [B M O]. The sums are computed in float64, by a plain loop: it is for
// many small matrices, in graphs that package stock translates. For a large product use op.MatMul.
type BatchMatMul struct {
	TransposeA, TransposeB bool
}

// Name implements graph.Op.
func (BatchMatMul) Name() string { return "batch matmul" }

// Shape implements graph.Op.
func (m BatchMatMul) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkInputs(in, 2); err != nil {
		return nil, err
	}
	if len(in[0]) != 3 || len(in[1]) != 3 {
		return nil, errors.Errorf("inputs must have 3 axes, got shapes %v and %v", in[0], in[1])
	}
	rows, depth := dimensions(in[0], m.TransposeA)
	inner, columns := dimensions(in[1], m.TransposeB)
	if depth != inner || in[0][0] != in[1][0] {
		return nil, errors.Errorf("numbers of matrices and inner sizes must be equal, got shapes %v and %v (transposed: %v, %v)",
			in[0], in[1], m.TransposeA, m.TransposeB)
	}
	return tensor.Shape{in[0][0], rows, columns}, nil
}

// dimensions returns the rows and columns of op(matrix).
func dimensions(shape tensor.Shape, transposed bool) (rows, columns int) {
	if transposed {
		return shape[2], shape[1]
	}
	return shape[1], shape[2]
}

// Lower implements graph.Op. A GPU has a thread for each element of c.
func (m BatchMatMul) Lower(l *graph.Lowering) {
	rows, depth := dimensions(l.Shapes[0], m.TransposeA)
	_, columns := dimensions(l.Shapes[1], m.TransposeB)
	w := matrixStrides{rows: rows, columns: columns, depth: depth, rowA: depth, stepA: 1, columnB: 1, stepB: columns}
	if m.TransposeA {
		w.rowA, w.stepA = 1, rows
	}
	if m.TransposeB {
		w.columnB, w.stepB = depth, 1
	}
	n := l.Shape.Elements()
	run := graph.Pick(l, batchMatMul[float32](w), batchMatMul[float64](w))
	arguments := []tensor.Argument{l.Out(), l.In(0), l.In(1), tensor.Int(n)}
	for _, v := range []int{w.rows, w.columns, w.depth, w.rowA, w.stepA, w.columnB, w.stepB} {
		arguments = append(arguments, tensor.Int(v))
	}
	l.Emit("batch_matmul_fwd", tensor.Threads(n), tensor.Rows(n/columns, columns*depth, run), arguments...)
}

// matrixStrides has the sizes of a product and the strides, in memory, between rows of a and
// columns of b, and between the terms of a sum.
type matrixStrides struct {
	rows, columns, depth        int
	rowA, stepA, columnB, stepB int
}

// batchMatMul computes rows lo to hi of all products. Sums are in float64.
func batchMatMul[T float32 | float64](w matrixStrides) func(args *tensor.Args, lo, hi int) {
	return func(args *tensor.Args, lo, hi int) {
		c, a, b := tensor.Slice[T](args, 0), tensor.Slice[T](args, 1), tensor.Slice[T](args, 2)
		for line := lo; line < hi; line++ {
			pair, row := line/w.rows, line%w.rows
			fromA, fromB := a[pair*w.rows*w.depth+row*w.rowA:], b[pair*w.depth*w.columns:]
			for column := range w.columns {
				total := 0.0
				for k := range w.depth {
					total += float64(fromA[k*w.stepA]) * float64(fromB[column*w.columnB+k*w.stepB])
				}
				c[line*w.columns+column] = T(total)
			}
		}
	}
}

// Gradients implements graph.Differentiable.
func (m BatchMatMul) Gradients(build *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	a, b := in[0], in[1]
	var da, db *graph.Node
	if m.TransposeA {
		da = build.Apply(BatchMatMul{TransposeA: m.TransposeB, TransposeB: true}, b, dout)
	} else {
		da = build.Apply(BatchMatMul{TransposeB: !m.TransposeB}, dout, b)
	}
	if m.TransposeB {
		db = build.Apply(BatchMatMul{TransposeA: true, TransposeB: m.TransposeA}, dout, a)
	} else {
		db = build.Apply(BatchMatMul{TransposeA: !m.TransposeA}, a, dout)
	}
	return []*graph.Node{da, db}
}
