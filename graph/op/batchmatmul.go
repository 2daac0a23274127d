package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// BatchMatMul is a matrix product for each of B pairs, c[i] = op(a[i]) op(b[i]), where op is the
// identity or a transposition: a [B M N] or, with TransposeA, [B N M], b [B N O] or, with
// TransposeB, [B O N] -> c [B M O]. On GPUs it is for small matrices: each element of c is the sum
// of one thread, in float64. For a single large product use MatMul.
type BatchMatMul struct {
	TransposeA, TransposeB bool
}

// Name implements graph.Op.
func (BatchMatMul) Name() string { return "batch matmul" }

// Shape implements graph.Op.
func (m BatchMatMul) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 3, 3); err != nil {
		return nil, err
	}
	rows, depth := dimensions(in[0], m.TransposeA)
	inner, columns := dimensions(in[1], m.TransposeB)
	if depth != inner || in[0][0] != in[1][0] {
		return nil, errors.Errorf("numbers of matrices and inner sizes must be equal, got shapes %v and %v (transposed: %v, %v)",
			in[0], in[1], m.TransposeA, m.TransposeB)
	}
	// GPUs count the elements of all matrices together in 32 bits.
	g := kernel.Gemm{M: in[0][0] * rows, N: columns, K: depth}
	return tensor.Shape{in[0][0], rows, columns}, g.Validate()
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
	rowA, stepA, columnB, stepB := depth, 1, 1, columns // strides of rows, columns and the terms of a sum
	if m.TransposeA {
		rowA, stepA = 1, rows
	}
	if m.TransposeB {
		columnB, stepB = depth, 1
	}
	n := l.Shape.Elements()
	arguments := []tensor.Argument{l.Out(), l.In(0), l.In(1), tensor.Int(n)}
	for _, v := range []int{rows, columns, depth, rowA, stepA, columnB, stepB} {
		arguments = append(arguments, tensor.Int(v))
	}
	g := kernel.Gemm{M: rows, N: columns, K: depth, TransposeA: m.TransposeA, TransposeB: m.TransposeB}
	l.Emit("batch_matmul_fwd", tensor.Threads(n), batchRoutine(l, g, l.Shape[0]), arguments...)
}

// batchRoutine returns the host kernel that multiplies each of some pairs of matrices.
func batchRoutine(l *graph.Lowering, g kernel.Gemm, pairs int) tensor.HostKernel {
	plan, err := g.Plan()
	if err != nil {
		panic(errors.Wrap(err, "op: Shape accepted a shape that the kernel does not"))
	}
	phase := graph.Pick(l, batchPhase[float32], batchPhase[float64])
	host := tensor.HostKernel{Workspace: pairs * plan.Workspace * l.DType.Size(), Private: plan.Scratch * l.DType.Size()}
	for i, tiles := range plan.Phases {
		host.Phases = append(host.Phases, tensor.Phase{Tiles: pairs * tiles, Run: phase(&plan, i, g)})
	}
	return host
}

// batchPhase computes a tile of a phase of one of the products.
func batchPhase[T float32 | float64](plan *kernel.Routine, phase int, g kernel.Gemm) func(a *tensor.Args, tile int) {
	tiles, at := plan.Phases[phase], operandIndex{out: 0, a: 1, b: 2, bias: absent}
	return func(a *tensor.Args, tile int) {
		o := routineOperands[T](a, at)
		pair := tile / tiles
		of := func(all []T, size int) []T { return all[pair*size:][:size] }
		o.A, o.B, o.Out, o.Workspace = of(o.A, g.M*g.K), of(o.B, g.K*g.N), of(o.Out, g.M*g.N), of(o.Workspace, plan.Workspace)
		kernel.Run(plan, phase, tile%tiles, o)
	}
}

// Gradients implements graph.Differentiable.
func (m BatchMatMul) Gradients(build *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return productGradients(build, in[0], in[1], dout, m.TransposeA, m.TransposeB, func(a, b bool) graph.Op { return BatchMatMul{a, b} })
}
