package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// GroupedConv2D is Conv2D within groups of channels: filters k of a group see only the channels of
// that group,
//
//	y[b k p q] = sum over c r s of
//	  w[k c r s] x[b g C/Groups+c p*Stride+r*Dilation-Padding q*Stride+s*Dilation-Padding]
//
// with g = floor(k Groups / K): x [B C H W], w [K C/Groups R S] -> y [B K P Q]. Groups must divide
// C and K. As many groups as channels make a depthwise convolution (Howard et al., MobileNets,
// 2017).
type GroupedConv2D struct {
	Stride, Padding, Dilation [2]int
	Trailing                  [2]int // as in Conv2D
	Groups                    int

	epilogue
}

// Name implements graph.Op.
func (GroupedConv2D) Name() string { return "grouped conv2d" }

// Shape implements graph.Op.
func (g GroupedConv2D) Shape(in []tensor.Shape) (tensor.Shape, error) {
	ranks := []int{4, 4}
	if g.bias {
		ranks = append(ranks, 1)
	}
	if err := checkRanks(in, ranks...); err != nil {
		return nil, err
	}
	channels, filters := in[0][1], in[1][0]
	if g.Groups < 1 || channels%g.Groups != 0 || filters%g.Groups != 0 {
		return nil, errors.Errorf("groups must be at least 1 and divide %d channels and %d filters, got %d", channels, filters, g.Groups)
	}
	if in[1][1] != channels/g.Groups {
		return nil, errors.Errorf("filter must have %d channels, those of a group, got %d", channels/g.Groups, in[1][1])
	}
	k := g.kernel(in[0], in[1])
	if err := k.Validate(); err != nil {
		return nil, err
	}
	return tensor.Shape{k.B, filters, k.P(), k.Q()}, nil
}

func (g GroupedConv2D) kernel(x, w tensor.Shape) kernel.GroupedConv2D {
	c := Conv2D{Stride: g.Stride, Padding: g.Padding, Dilation: g.Dilation, Trailing: g.Trailing, epilogue: g.epilogue}
	return kernel.GroupedConv2D{Conv2D: c.kernel(x, w), Groups: g.Groups}
}

// groupArguments returns the sizes of a group's convolution, as for Conv2D, and the number of
// groups.
func groupArguments(k kernel.GroupedConv2D) []tensor.Argument {
	group := k.Conv2D
	group.C, group.K = k.C/k.Groups, k.K/k.Groups
	return append(convSizes(group), tensor.Int(k.Groups))
}

// Fuse implements graph.Fuser.
func (g GroupedConv2D) Fuse(consumer graph.Op) (graph.Op, bool) {
	var ok bool
	g.epilogue, ok = g.with(consumer)
	return g, ok
}

// Lower implements graph.Op.
func (g GroupedConv2D) Lower(l *graph.Lowering) {
	k := g.kernel(l.Shapes[0], l.Shapes[1])
	k.Direct = l.DType == tensor.Float64
	plan, err := k.Forward()
	stem, at, arguments := "grouped_conv2d_fwd", operandIndex{out: 0, a: 1, b: 2, bias: absent}, []tensor.Argument{l.Out(), l.In(0), l.In(1)}
	var bias *tensor.Argument
	if g.bias {
		stem, at.bias, arguments = "grouped_conv2d_bias_fwd", 3, append(arguments, l.In(2))
		bias = &arguments[3]
	}
	low, high := g.bounds()
	arguments = append(append(arguments, groupArguments(k)...), tensor.Float(l.DType, low), tensor.Float(l.DType, high))
	host := hostRoutine(l, plan, err, at)
	if d, is := depthwiseOf(k, l.DType); is {
		l.EmitCalls(stem, []tensor.Call{d.forward(l, bias, low, high)}, host, arguments...)
		return
	}
	l.Emit(stem, tensor.Threads(l.Shape.Elements()), host, arguments...)
}

// Gradients implements graph.Differentiable.
func (g GroupedConv2D) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	x, w := graph.ShapeOf(in[0]), graph.ShapeOf(in[1])
	return []*graph.Node{
		b.Apply(groupedConv2DBackwardInput{g, x[2], x[3]}, dout, in[1]),
		b.Apply(groupedConv2DBackwardFilter{g, w[2], w[3]}, dout, in[0]),
	}
}

// groupedConv2DBackwardInput is the gradient by the input: dout [B K P Q], w [K C/Groups R S] -> dx
// [B C H W]. The image's size is an attribute, since a stride makes several sizes of x have the
// same y.
type groupedConv2DBackwardInput struct {
	conv          GroupedConv2D
	height, width int
}

func (groupedConv2DBackwardInput) Name() string { return "grouped conv2d gradient of input" }

func (g groupedConv2DBackwardInput) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4); err != nil {
		return nil, err
	}
	x := tensor.Shape{in[0][0], in[1][1] * g.conv.Groups, g.height, g.width}
	y, err := g.conv.Shape([]tensor.Shape{x, in[1]})
	if err != nil {
		return nil, err
	}
	return x, checkEqual(y, in[0])
}

func (g groupedConv2DBackwardInput) Lower(l *graph.Lowering) {
	k := g.conv.kernel(l.Shape, l.Shapes[1])
	k.Direct = l.DType == tensor.Float64
	plan, err := k.BackwardInput()
	host := hostRoutine(l, plan, err, operandIndex{out: 0, a: 1, b: 2, bias: absent})
	arguments := append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, groupArguments(k)...)
	if d, is := depthwiseOf(k, l.DType); is {
		l.EmitCalls("grouped_conv2d_bwd_input", []tensor.Call{d.backwardInput(l)}, host, arguments...)
		return
	}
	l.Emit("grouped_conv2d_bwd_input", tensor.Threads(l.Shape.Elements()), host, arguments...)
}

// groupedConv2DBackwardFilter is the gradient by the filter: dout [B K P Q], x [B C H W] -> dw [K
// C/Groups R S].
type groupedConv2DBackwardFilter struct {
	conv          GroupedConv2D
	height, width int
}

func (groupedConv2DBackwardFilter) Name() string { return "grouped conv2d gradient of filter" }

func (g groupedConv2DBackwardFilter) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4); err != nil {
		return nil, err
	}
	if g.conv.Groups < 1 {
		return nil, errors.Errorf("groups must be at least 1, got %d", g.conv.Groups)
	}
	w := tensor.Shape{in[0][1], in[1][1] / g.conv.Groups, g.height, g.width}
	y, err := g.conv.Shape([]tensor.Shape{in[1], w})
	if err != nil {
		return nil, err
	}
	return w, checkEqual(y, in[0])
}

func (g groupedConv2DBackwardFilter) Lower(l *graph.Lowering) {
	k := g.conv.kernel(l.Shapes[1], l.Shape)
	k.Direct = l.DType == tensor.Float64
	plan, err := k.BackwardFilter()
	host := hostRoutine(l, plan, err, operandIndex{out: 0, a: 1, b: 2, bias: absent})
	arguments := append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, groupArguments(k)...)
	if d, is := depthwiseOf(k, l.DType); is {
		l.EmitCalls("grouped_conv2d_bwd_filter", d.backwardFilter(l), host, arguments...)
		return
	}
	l.Emit("grouped_conv2d_bwd_filter", tensor.Blocks{Count: l.Shape.Elements(), Threads: SumThreads}, host, arguments...)
}
