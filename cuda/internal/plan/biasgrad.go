package plan

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// total is the sum of a gradient over each channel's planes, as a convolution's bias has it, which
// a launch would make. In a step a later call that goes through all of the gradient in any case, to
// pack it or to multiply what windows spread out, leaves its blocks' sums in the rows of a table,
// and the launch does nothing.
type biasGradSum struct {
	gradient        *tensor.Buffer
	plane, channels int
	out             tensor.Argument
	alone           lowering // of the launch by itself, to the same bits; nil until a call leaves the sums
}

// deferredSum is the total that a later launch makes instead of launch i, or nil.
func (p *planner) deferredSum(launches []tensor.Launch, i int) *biasGradSum {
	grid, is := launches[i].Calls[0].Grid.(tensor.Blocks)
	if !is || grid.Plane == 0 {
		return nil
	}
	a := launches[i].Arguments
	t := &biasGradSum{gradient: a[1].Buffer, plane: grid.Plane, channels: grid.Count, out: a[0]}
	until, is := p.firstPass[t.gradient]
	if !is || until <= i {
		return nil
	}
	for _, l := range launches[i+1 : until+1] {
		for _, a := range l.Arguments {
			if b := a.Buffer; b != nil && (b.Overlaps(t.out.Buffer) || a.Access&tensor.Write != 0 && b.Overlaps(t.gradient)) {
				return nil
			}
		}
	}
	return t
}

// passing is the total that a call is to leave which goes through a gradient of so many channels of
// planes, or nil.
func (p *planner) fusedSum(gradient *tensor.Buffer, plane, channels int) *biasGradSum {
	if _, known := p.firstPass[gradient]; p.firstPass != nil && !known {
		p.firstPass[gradient] = p.launch
	}
	for _, t := range p.biasGradSums {
		if t.gradient == gradient && t.plane == plane && t.channels == channels && t.alone == nil {
			return t
		}
	}
	return nil
}

// table is where a call leaves rows of a total's sums, and the call that adds them up. One row
// needs none.
func (t *biasGradSum) partialSums(p *planner, rows int) (sums tensor.Argument, calls []Call) {
	if rows == 1 {
		return t.out, nil
	}
	const columns, threads = 8, 256 // of a block of the kernel
	dtype := t.out.Buffer.DType
	table := p.workBuffer(dtype, rows*t.channels)
	return tensor.Out(table), p.lowerCall(tensor.Call{
		Kernel: "sum_rows_" + dtype.Suffix(), Grid: tensor.Shares{Items: ceilDiv(t.channels, columns), Most: 1, Threads: threads, Rows: true},
		Arguments: []tensor.Argument{t.out, tensor.In(table), tensor.Int(t.channels), tensor.Int(rows)},
	})
}

// of is the total as a launch by itself makes it.
func (t *biasGradSum) forLaunch(l *tensor.Launch) *biasGradSum {
	own := *t
	own.gradient, own.out, own.alone = l.Arguments[1].Buffer, l.Arguments[0], nil
	return &own
}

// left refuses totals that no call left.
func checkSums(totals []*biasGradSum) error {
	for _, t := range totals {
		if t.alone == nil {
			return errors.Errorf("cuda: no call leaves the sums of %v", t.gradient)
		}
	}
	return nil
}
