package op

import (
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// runs says where the elements of a broadcast operand lie, for each element of the output: cut into
// runs over which the operand either stays (stride 0) or moves along (stride 1). Operands of one
// output that come from the same groups have the same runs.
type runs struct {
	outer  strided.Layout
	run    int
	stride int
}

// newRuns returns the runs of the operand that varies over the groups whose class has the bit.
func newRuns(groups []group, bit int) runs {
	strides := make([]int, len(groups))
	stride := 1
	for i := len(groups) - 1; i >= 0; i-- {
		if groups[i].class&bit != 0 {
			strides[i] = stride
			stride *= groups[i].extent
		}
	}
	last := len(groups) - 1
	r := runs{run: groups[last].extent, stride: strides[last]}
	for i, g := range groups[:last] {
		r.outer.Add(g.extent, strides[i])
	}
	return r
}

// next is how many of the elements lo to hi lie in lo's run, and the operand's offset for lo.
func (r *runs) next(lo, hi int) (n, offset int) {
	row, at := lo/r.run, lo%r.run
	return min(r.run-at, hi-lo), r.outer.At(row) + at*r.stride
}

// arguments are a kernel's integers: extents and strides of maxAxes axes, see strided.Layout.
func (r *runs) arguments() []tensor.Argument {
	all := r.outer
	all.Add(r.run, r.stride)
	return all.Arguments(maxAxes)
}
