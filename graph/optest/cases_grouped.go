package optest

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// naiveGrouped computes the grouped convolution as one convolution for each group, of the group's
// channels and filters. v has the channels and filters of all groups.
func (v convolution) naiveGrouped(groups int) func(in [][]float64) []float64 {
	return func(in [][]float64) []float64 {
		one := v
		one.batch, one.channels, one.filters = 1, v.channels/groups, v.filters/groups
		plane, filters := one.channels*v.height*v.width, one.filters*one.terms()
		var y []float64
		for b := range v.batch {
			for g := range groups {
				y = append(y, one.naive([][]float64{in[0][(b*groups+g)*plane:][:plane], in[1][g*filters:][:filters]})...)
			}
		}
		return y
	}
}

func groupedCases() []Case {
	var cases []Case
	for _, row := range []struct {
		groups int
		v      convolution
	}{
		{1, convolve(2, 3, 7, 5, 4, 3, 3, op.Square(1), op.Square(1), op.Square(1))},
		{2, convolve(2, 6, 9, 7, 4, 3, 2, [2]int{2, 1}, [2]int{0, 1}, [2]int{1, 2})},
		{5, convolve(3, 5, 11, 13, 5, 3, 3, op.Square(2), op.Square(1), op.Square(1))},
		{7, convolve(1, 7, 33, 31, 14, 5, 5, op.Square(1), op.Square(2), op.Square(1))},
		{32, convolve(2, 32, 15, 17, 32, 3, 3, op.Square(1), op.Square(1), op.Square(1))},
		{3, convolve(1, 3, 8, 8, 3, 1, 1, op.Square(3), op.Square(0), op.Square(1))},
		{4, convolve(2, 4, 12, 14, 4, 3, 3, op.Square(2), op.Square(0), op.Square(1)).trailing(1, 1)},
		{3, convolve(2, 3, 14, 13, 3, 5, 5, op.Square(2), op.Square(1), op.Square(1)).trailing(1, 1)},
		{2, convolve(3, 16, 9, 9, 20, 3, 3, op.Square(1), op.Square(1), op.Square(1))},
		{5, convolve(3, 5, 15, 29, 5, 5, 5, op.Square(1), op.Square(2), op.Square(1))},
		{4, convolve(2, 4, 14, 7, 4, 5, 5, op.Square(1), [2]int{4, 0}, op.Square(1))},
		{2, convolve(9, 2, 57, 31, 2, 3, 3, op.Square(2), [2]int{1, 0}, op.Square(1))},
		{2, convolve(11, 2, 27, 23, 2, 5, 5, op.Square(2), op.Square(2), op.Square(1))},
		{6, convolve(2, 6, 33, 70, 6, 3, 3, op.Square(1), op.Square(1), op.Square(1))},
	} {
		v := row.v
		inputs := v.inputs()
		inputs[1] = Float(Normal, v.filters, v.channels/row.groups, v.filterHeight, v.filterWide)
		cases = append(cases, Case{
			Name:   fmt.Sprintf("grouped conv2d in %d %v", row.groups, v),
			Op:     v.grouped(row.groups),
			Inputs: inputs, Naive: v.naiveGrouped(row.groups), Terms: v.terms() / row.groups,
		})
	}
	separate := convolve(2, 4, 8, 7, 4, 5, 5, op.Square(1), op.Square(2), op.Square(1))
	v := convolve(2, 6, 9, 7, 12, 3, 3, op.Square(2), op.Square(1), op.Square(1))
	clip := op.Clip{High: 1.25}
	return append(cases, v.groupedFused(6, "grouped_conv2d_bias_fwd", true, clip), v.groupedFused(3, "grouped_conv2d_fwd", false, clip),
		v.groupedFused(2, "grouped_conv2d_bias_fwd", true, op.ReLU{}), separate.groupedFused(4, "grouped_conv2d_bias_fwd", true, clip),
		separate.groupedFused(4, "grouped_conv2d_fwd", false, clip))
}

func (v convolution) grouped(groups int) op.GroupedConv2D {
	return op.GroupedConv2D{Stride: v.conv.Stride, Padding: v.conv.Padding, Dilation: v.conv.Dilation, Trailing: v.conv.Trailing, Groups: groups}
}

// groupedFused returns a row of a convolution in groups with a bias and an activation, a ReLU or a
// Clip, which the compiler fuses into it.
func (v convolution) groupedFused(groups int, kernel string, bias bool, activation graph.Op) Case {
	c := v.fused(kernel, bias, false)
	c.Name = fmt.Sprintf("grouped conv2d in %d, bias %v, %s", groups, bias, activation.Name())
	c.Inputs[1] = Float(Normal, v.filters, v.channels/groups, v.filterHeight, v.filterWide)
	c.Build = func(b *graph.Builder, in []*graph.Node) *graph.Node {
		y := b.Apply(v.grouped(groups), in[0], in[1])
		if bias {
			y = b.Apply(op.BiasAdd{}, y, in[2])
		}
		return b.Apply(activation, y)
	}
	c.Naive = func(in [][]float64) []float64 {
		y := v.naiveGrouped(groups)(in)
		height, width := v.output()
		if bias {
			y = naiveBias(y, in[2], height*width)
		}
		for i, sum := range y {
			y[i] = max(sum, 0)
			if clip, is := activation.(op.Clip); is {
				y[i] = min(y[i], clip.High)
			}
		}
		return y
	}
	return c
}
