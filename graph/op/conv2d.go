package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Square returns the pair (n, n) for height and width.
func Square(n int) [2]int { return [2]int{n, n} }

// Conv2D is the cross-correlation that neural networks call convolution, ungrouped:
//
//	y[b k p q] = sum over c r s of
//	  w[k c r s] x[b c p*Stride+r*Dilation-Padding q*Stride+s*Dilation-Padding]
//
// with zeros outside x: x [B C H W], w [K C R S] -> y [B K P Q], where
//
//	P = floor((H + 2 Padding + Trailing - Dilation (R-1) - 1) / Stride) + 1
//
// and Q likewise. The pairs are height, width. A bias, and a ReLU or a Clip from 0 that follow, are
// fused into it. Source: Dumoulin and Visin, A guide to convolution arithmetic (2016).
type Conv2D struct {
	Stride, Padding, Dilation [2]int
	// Trailing is the number of zeros after the end of an axis in addition to Padding, which is on
	// both sides: a padding of 0 before and 1 after is Padding 0 and Trailing 1. It may be
	// negative, down to -Padding.
	Trailing [2]int

	epilogue
}

// epilogue is the last step of a convolution: it adds a bias to the sums, and clips them from
// below at 0 and, if ceiling is not 0, from above at ceiling.
type epilogue struct {
	bias, relu bool
	ceiling    float32
}

// with returns the epilogue that also does the work of an op that follows, if it can.
func (e epilogue) with(consumer graph.Op) (epilogue, bool) {
	switch next := consumer.(type) {
	case BiasAdd:
		if !e.bias && !e.relu {
			e.bias = true
			return e, true
		}
	case ReLU:
		if !e.relu {
			e.relu = true
			return e, true
		}
	case Clip:
		high := float32(next.High)
		if !e.relu && next.Low == 0 && high > 0 && float64(high) == next.High {
			e.relu, e.ceiling = true, high
			return e, true
		}
	}
	return e, false
}

// Name implements graph.Op.
func (Conv2D) Name() string { return "conv2d" }

// Shape implements graph.Op.
func (c Conv2D) Shape(in []tensor.Shape) (tensor.Shape, error) {
	ranks := []int{4, 4}
	if c.bias {
		ranks = append(ranks, 1)
	}
	if err := checkRanks(in, ranks...); err != nil {
		return nil, err
	}
	if in[0][1] != in[1][1] {
		return nil, errors.Errorf("input must have the filter's %d channels, got %d", in[1][1], in[0][1])
	}
	k := c.kernel(in[0], in[1])
	if err := k.Validate(); err != nil {
		return nil, err
	}
	return tensor.Shape{k.B, k.K, k.P(), k.Q()}, nil
}

func (c Conv2D) kernel(x, w tensor.Shape) kernel.Conv2D {
	return kernel.Conv2D{
		B: x[0], C: x[1], H: x[2], W: x[3], K: w[0], R: w[2], S: w[3],
		StrideH: c.Stride[0], StrideW: c.Stride[1], PadH: c.Padding[0], PadW: c.Padding[1],
		DilationH: c.Dilation[0], DilationW: c.Dilation[1], TrailH: c.Trailing[0], TrailW: c.Trailing[1],
		Bias: c.bias, ReLU: c.relu, Ceiling: c.ceiling,
	}
}

// Fuse implements graph.Fuser.
func (c Conv2D) Fuse(consumer graph.Op) (graph.Op, bool) {
	var ok bool
	c.epilogue, ok = c.with(consumer)
	return c, ok
}

// Lower implements graph.Op. A GPU computes the convolution as an implicit matrix product [K, C R
// S] x [C R S, B P Q]: it has a product's grid, and the second factor is read from the images
// without im2col in memory. The host chooses between Winograd's and direct algorithms, in float64
// always a direct one.
func (c Conv2D) Lower(l *graph.Lowering) {
	k := c.kernel(l.Shapes[0], l.Shapes[1])
	k.Direct = l.DType == tensor.Float64
	keeps := keepsPrepared(l, k.B)
	if keeps && l.In(1).Buffer.Arena == tensor.Shared {
		// The filter of a frozen network, which all samples share. Choosing the algorithm as for a
		// larger batch gives an image the same bits in both.
		k.FilterImages = preparedRows
	}
	plan, err := k.Forward()
	at := operandIndex{out: 0, a: 1, b: 2, bias: absent}
	arguments := []tensor.Argument{l.Out(), l.In(0), l.In(1)}
	stem := "conv2d_fwd"
	if c.bias {
		at.bias = len(arguments)
		arguments = append(arguments, l.In(2))
		stem = "conv2d_bias_fwd"
	}
	arguments = append(arguments, convSizes(k)...)
	product := tensor.Product{
		Rows: k.K, Columns: k.B * k.P() * k.Q(), Depth: k.C * k.R * k.S,
		Images: true, Forward: true, ReLU: c.relu && (c.ceiling == 0 || c.ceiling == 6), AtMost6: c.ceiling == 6, Height: k.P(), Width: k.Q(),
	}
	host := hostRoutine(l, plan, err, at)
	if keeps {
		host.Preparation = tensor.Preparation{Phases: plan.Preparation, Argument: at.b}
	}
	high := tensor.Float(l.DType, float64(c.ceiling))
	switch c.ceiling {
	case 0:
		l.EmitCalls(stem, []tensor.Call{l.Call("conv2d_fwd", product, arguments...)}, host, append(arguments, tensor.Bool(c.relu))...)
		return
	case 6:
		l.EmitCalls(stem, []tensor.Call{l.Call("conv2d_fwd", product, arguments...)}, host, append(arguments, high)...)
		return
	}
	// For other bounds than ReLU6's a GPU clips in a separate kernel.
	n := l.Shape.Elements()
	sums := tensor.NewWorkspace(l.DType, n)
	clip := l.Call("clip_fwd", tensor.Threads(n), l.Out(), tensor.In(sums), tensor.Int(n), tensor.Float(l.DType, 0), high)
	into := append([]tensor.Argument{tensor.Out(sums)}, arguments[1:]...)
	l.EmitCalls(stem, []tensor.Call{l.Call("conv2d_fwd", product, into...), clip}, host, append(arguments, high)...)
}

func convSizes(k kernel.Conv2D) []tensor.Argument {
	var sizes []tensor.Argument
	for _, n := range []int{
		k.B, k.C, k.H, k.W, k.K, k.R, k.S, k.P(), k.Q(),
		k.StrideH, k.StrideW, k.PadH, k.PadW, k.DilationH, k.DilationW,
	} {
		sizes = append(sizes, tensor.Int(n))
	}
	return sizes
}

// Gradients implements graph.Differentiable.
func (c Conv2D) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	x, w := graph.ShapeOf(in[0]), graph.ShapeOf(in[1])
	return []*graph.Node{
		b.Apply(conv2DBackwardInput{c, x[2], x[3]}, dout, in[1]),
		b.Apply(conv2DBackwardFilter{c, w[2], w[3]}, dout, in[0]),
	}
}

// conv2DBackwardInput is the gradient by the input, a transposed convolution: dout [B K P Q], w [K
// C R S] -> dx [B C H W]. The image's size is an attribute, since a stride makes several sizes of x
// have the same y.
type conv2DBackwardInput struct {
	conv          Conv2D
	height, width int
}

func (conv2DBackwardInput) Name() string { return "conv2d gradient of input" }

func (g conv2DBackwardInput) x(in []tensor.Shape) tensor.Shape {
	return tensor.Shape{in[0][0], in[1][1], g.height, g.width}
}

func (g conv2DBackwardInput) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4); err != nil {
		return nil, err
	}
	x := g.x(in)
	y, err := g.conv.Shape([]tensor.Shape{x, in[1]})
	if err != nil {
		return nil, err
	}
	return x, checkEqual(y, in[0])
}

// Lower implements graph.Op, on a GPU as an implicit product [C, K R S] x [K R S, B H W].
func (g conv2DBackwardInput) Lower(l *graph.Lowering) {
	k := g.conv.kernel(l.Shape, l.Shapes[1])
	k.Direct = l.DType == tensor.Float64
	plan, err := k.BackwardInput()
	host := hostRoutine(l, plan, err, operandIndex{out: 0, a: 1, b: 2, bias: absent})
	product := tensor.Product{Rows: k.C, Columns: k.B * k.H * k.W, Depth: k.K * k.R * k.S, Images: true}
	l.Emit("conv2d_bwd_input", product, host, append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, convSizes(k)...)...)
}

// conv2DBackwardFilter is the gradient by the filter, a sum over images and pixels:
// dout [B K P Q], x [B C H W] -> dw [K C R S].
type conv2DBackwardFilter struct {
	conv          Conv2D
	height, width int
}

func (conv2DBackwardFilter) Name() string { return "conv2d gradient of filter" }

func (g conv2DBackwardFilter) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4); err != nil {
		return nil, err
	}
	w := tensor.Shape{in[0][1], in[1][1], g.height, g.width}
	y, err := g.conv.Shape([]tensor.Shape{in[1], w})
	if err != nil {
		return nil, err
	}
	return w, checkEqual(y, in[0])
}

// Lower implements graph.Op, on a GPU as an implicit product [K, B P Q] x [B P Q, C R S]. Its inner
// dimension is long, its result small: package cuda may split the sum over blocks.
func (g conv2DBackwardFilter) Lower(l *graph.Lowering) {
	k := g.conv.kernel(l.Shapes[1], l.Shape)
	k.Direct = l.DType == tensor.Float64
	plan, err := k.BackwardFilter()
	host := hostRoutine(l, plan, err, operandIndex{out: 0, a: 1, b: 2, bias: absent})
	product := tensor.Product{Rows: k.K, Columns: k.C * k.R * k.S, Depth: k.B * k.P() * k.Q(), Images: true, Filter: true}
	l.Emit("conv2d_bwd_filter", product, host, append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, convSizes(k)...)...)
}
