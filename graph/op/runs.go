package op

import (
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// runs maps elements of an output to elements of a broadcast operand. The output is divided into
// runs over which the operand's offset is constant (stride 0) or advances with the output's (stride
// 1). The operands of one output, if they are made from the same groups, have the same runs.
type runs struct {
	outer  strided.Layout
	run    int
	stride int
}

// newRuns returns the runs of the operand that is not repeated along the groups whose class has
// bit.
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

// next returns how many of the elements lo to hi are in the run of lo, and the operand's offset
// there.
func (r *runs) next(lo, hi int) (n, offset int) {
	row, at := lo/r.run, lo%r.run
	return min(r.run-at, hi-lo), r.outer.At(row) + at*r.stride
}

// arguments returns a kernel's integers: extents and strides of maxAxes axes, see strided.Layout.
func (r *runs) arguments() []tensor.Argument {
	all := r.outer
	all.Add(r.run, r.stride)
	return all.Arguments(maxAxes)
}
