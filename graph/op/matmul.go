package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// MatMul is the matrix product c = op(a) op(b), where op is the identity or a transposition:
// a [M N] or, with TransposeA, [N M], b [N O] or, with TransposeB, [O N] -> c [M O]. A linear layer
// is x [B I], w [O I] -> [B O] with TransposeB. A bias over the columns and a ReLU that follow are
// fused into it, or, in the backward pass, the gradient of a ReLU.
type MatMul struct {
	TransposeA, TransposeB bool

	bias, relu bool
	mask       bool // the third input is a ReLU's output
}

// Name implements graph.Op.
func (MatMul) Name() string { return "matmul" }

func (m MatMul) kernel(a, b tensor.Shape) (g kernel.Gemm, inner int) {
	g = kernel.Gemm{M: a[0], K: a[1], N: b[1], TransposeA: m.TransposeA, TransposeB: m.TransposeB, ReLU: m.relu}
	inner = b[0]
	if m.TransposeA {
		g.M, g.K = a[1], a[0]
	}
	if m.TransposeB {
		g.N, inner = b[0], b[1]
	}
	if m.bias {
		g.Bias = kernel.BiasColumn
	}
	return g, inner
}

// Shape implements graph.Op.
func (m MatMul) Shape(in []tensor.Shape) (tensor.Shape, error) {
	ranks := []int{2, 2}
	if m.bias {
		ranks = append(ranks, 1)
	}
	if err := checkRanks(in, ranks...); err != nil {
		return nil, err
	}
	g, inner := m.kernel(in[0], in[1])
	if g.K != inner {
		return nil, errors.Errorf("inner sizes must be equal, got %d and %d of shapes %v and %v (transposed: %v, %v)",
			g.K, inner, in[0], in[1], m.TransposeA, m.TransposeB)
	}
	return tensor.Shape{g.M, g.N}, g.Validate()
}

// Fuse implements graph.Fuser.
func (m MatMul) Fuse(consumer graph.Op) (graph.Op, bool) {
	switch consumer {
	case BiasAdd{}:
		if !m.bias && !m.relu && !m.mask {
			m.bias = true
			return m, true
		}
	case ReLU{}:
		if !m.relu && !m.mask {
			m.relu = true
			return m, true
		}
	case reluBackward{}:
		if !m.bias && !m.relu && !m.mask {
			m.mask = true
			return m, true
		}
	}
	return nil, false
}

// Lower implements graph.Op.
func (m MatMul) Lower(l *graph.Lowering) {
	g, _ := m.kernel(l.Shapes[0], l.Shapes[1])
	joint := m.joint(l, g)
	g.PackB = keepsPrepared(l, g.M) && joint.Chains == 0
	plan, err := g.Plan()
	at := operandIndex{out: 0, a: 1, b: 2, bias: absent}
	arguments := []tensor.Argument{l.Out(), l.In(0), l.In(1)}
	stem := "matmul_fwd"
	if m.bias {
		at.bias = len(arguments)
		arguments = append(arguments, l.In(2))
		stem = "matmul_bias_fwd"
	}
	host := hostRoutine(l, plan, err, at)
	host.Joint = joint
	if g.PackB {
		host.Preparation = tensor.Preparation{Phases: plan.Preparation, Argument: at.b}
	}
	if m.mask {
		arguments = append(arguments, l.In(2))
		stem = "matmul_mask_fwd"
		mask := graph.Pick(l, maskProduct[float32], maskProduct[float64])
		host.Phases = append(host.Phases, tensor.RowTiles(g.M*g.N, 1, 1, mask).Phases...)
	}
	arguments = append(arguments, tensor.Int(g.M), tensor.Int(g.N), tensor.Int(g.K), tensor.Bool(m.TransposeA), tensor.Bool(m.TransposeB))
	product := tensor.Product{Rows: g.M, Columns: g.N, Depth: g.K, Forward: true, ReLU: m.relu, Mask: m.mask}
	l.EmitCalls(stem, []tensor.Call{l.Call("matmul", product, arguments...)}, host, append(arguments, tensor.Bool(m.relu))...)
}

// maskProduct applies the gradient of a ReLU, in place, to the product in the output.
func maskProduct[T float32 | float64](a *tensor.Args, lo, hi int) {
	out := tensor.Slice[T](a, 0)[lo:hi]
	kernel.PassAbove(out, out, tensor.Slice[T](a, 3)[lo:hi], 0)
}

// Gradients implements graph.Differentiable.
func (m MatMul) Gradients(build *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return productGradients(build, in[0], in[1], dout, m.TransposeA, m.TransposeB, func(a, b bool) graph.Op { return MatMul{TransposeA: a, TransposeB: b} })
}

// productGradients returns the gradients of products c = op(a) op(b): for c = a b they are
// da = dc b' and db = a' dc. A transposed operand gets the transpose of its gradient, again as one
// product without a copy: for c = a' b it is da = b dc'.
func productGradients(build *graph.Builder, a, b, dout *graph.Node, transposeA, transposeB bool, product func(a, b bool) graph.Op) []*graph.Node {
	var da, db *graph.Node
	if transposeA {
		da = build.Apply(product(transposeB, true), b, dout)
	} else {
		da = build.Apply(product(false, !transposeB), dout, b)
	}
	if transposeB {
		db = build.Apply(product(true, transposeA), dout, a)
	} else {
		db = build.Apply(product(!transposeA, false), a, dout)
	}
	return []*graph.Node{da, db}
}
