package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// ReLU is y = max(0, x), elementwise: x [...] -> y [...]. Its gradient, which is 0 at 0, needs only
// y, so that the memory of x is free as soon as y is computed. MatMul, Conv2D, MaxPool2D and Add
// fuse a ReLU that follows them.
type ReLU struct{}

// Name implements graph.Op.
func (ReLU) Name() string { return "relu" }

// Shape implements graph.Op.
func (ReLU) Shape(in []tensor.Shape) (tensor.Shape, error) { return unaryShape(in) }

// Lower implements graph.Op.
func (ReLU) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	run := graph.Pick(l, relu[float32], relu[float64])
	l.Emit("relu_fwd", tensor.Vec4(n), tensor.RowTiles(n, 1, 1, run), l.Out(), l.In(0), tensor.Int(n))
}

func relu[T float32 | float64](a *tensor.Args, lo, hi int) {
	y, x := tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi]
	kernel.Raise(y, x, 0)
}

// Gradients implements graph.Differentiable.
func (ReLU) Gradients(b *graph.Builder, _ []*graph.Node, output, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(reluBackward{}, dout, output)}
}

// reluBackward is dx = dout where y > 0, else 0: dout [...], y [...] -> dx [...]. With sum, dout is
// the sum of the first two of three inputs.
type reluBackward struct{ sum bool }

func (reluBackward) Name() string { return "relu gradient" }

func (g reluBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if g.sum && len(in) == 3 {
		if err := checkEqual(in[0], in[1]); err != nil {
			return nil, err
		}
		in = in[1:]
	}
	if err := checkRanks(in, -1, -1); err != nil {
		return nil, err
	}
	return in[0], checkEqual(in[0], in[1])
}

// FuseSum implements graph.SumFuser: in a residual network, the gradients from the body and the
// shortcut are added in the same pass.
func (g reluBackward) FuseSum() (graph.Op, bool) { return reluBackward{sum: true}, !g.sum }

func (g reluBackward) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	if g.sum {
		run := graph.Pick(l, reluSumGradient[float32], reluSumGradient[float64])
		l.Emit("relu_bwd_sum", tensor.Vec4(n), tensor.RowTiles(n, 1, 1, run), l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(n))
		return
	}
	run := graph.Pick(l, reluGradient[float32], reluGradient[float64])
	l.Emit("relu_bwd", tensor.Vec4(n), tensor.RowTiles(n, 1, 1, run), l.Out(), l.In(0), l.In(1), tensor.Int(n))
}

func reluSumGradient[T float32 | float64](a *tensor.Args, lo, hi int) {
	dx, y := tensor.Slice[T](a, 0), tensor.Slice[T](a, 3)
	inCacheBlocks(lo, hi, func(lo, hi int) {
		kernel.Add(dx[lo:hi], tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi])
		kernel.PassAbove(dx[lo:hi], dx[lo:hi], y[lo:hi], 0)
	})
}

// cacheBlock is a number of elements that fit into the first-level cache.
const cacheBlock = 2048

// inCacheBlocks calls passes for blocks of at most cacheBlock elements, so that the second pass
// over a block finds the results of the first in the cache.
func inCacheBlocks(lo, hi int, passes func(lo, hi int)) {
	for ; lo < hi; lo += cacheBlock {
		passes(lo, min(lo+cacheBlock, hi))
	}
}

func reluGradient[T float32 | float64](a *tensor.Args, lo, hi int) {
	kernel.PassAbove(tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi], 0)
}
