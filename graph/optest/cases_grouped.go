package optest

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph/op"
)

// naiveGrouped is the grouped convolution as one convolution per group, of the group's channels and
// filters. v has the channels and filters of all groups.
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
	} {
		v := row.v
		inputs := v.inputs()
		inputs[1] = Float(Normal, v.filters, v.channels/row.groups, v.filterHeight, v.filterWide)
		cases = append(cases, Case{
			Name:   fmt.Sprintf("grouped conv2d in %d %v", row.groups, v),
			Op:     op.GroupedConv2D{Stride: v.conv.Stride, Padding: v.conv.Padding, Dilation: v.conv.Dilation, Groups: row.groups},
			Inputs: inputs, Naive: v.naiveGrouped(row.groups), Terms: v.terms() / row.groups,
		})
	}
	return cases
}
