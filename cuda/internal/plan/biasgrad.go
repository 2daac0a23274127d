package plan

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// deferredSum returns the sum of launch i if a later launch can make it, or nil. No launch in
// between may use the sum or change the gradient.
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

// fusedSum returns the sum that a call should make while it goes through a gradient whose images
// have channels planes of plane elements, or nil. It also notes that the current launch goes
// through the gradient.
func (p *planner) fusedSum(gradient *tensor.Buffer, plane, channels int) *biasGradSum {
	if _, known := p.firstPass[gradient]; p.firstPass != nil && !known {
		p.firstPass[gradient] = p.launch
	}
	for _, t := range p.biasGradSums {
		if t.gradient == gradient && t.plane == plane && t.channels == channels && t.separate == nil {
			return t
		}
	}
	return nil
}

// partialSums returns the table for a call's blocks to write rows of sums to, and the call that
// adds up the rows. A single row needs no table: it is the result.
func (t *biasGradSum) partialSums(p *planner, rows int) (sums tensor.Argument, calls []Call) {
	if rows == 1 {
		return t.out, nil
	}
	const columns, threads = 8, 256 // of a block of the kernel
	dtype := t.out.Buffer.DType
	table := p.workBuffer(dtype, rows*t.channels)
	c := tensor.Call{
		Kernel:    "sum_rows_" + dtype.Suffix(),
		Arguments: []tensor.Argument{t.out, tensor.In(table), tensor.Int(t.channels), tensor.Int(rows)},
	}
	grid := tensor.Shares{Items: ceilDiv(t.channels, columns), MaxItems: 1, Threads: threads, Rows: true}
	return tensor.Out(table), []Call{p.lowerShares(c, grid)}
}

// forLaunch returns the sum with the buffers of launch l, which is lowered on its own.
func (t *biasGradSum) forLaunch(l *tensor.Launch) *biasGradSum {
	own := *t
	own.gradient, own.out, own.separate = l.Arguments[1].Buffer, l.Arguments[0], nil
	return &own
}

// checkSums returns an error if no call makes one of the sums.
func checkSums(sums []*biasGradSum) error {
	for _, t := range sums {
		if t.separate == nil {
			return errors.Errorf("cuda: no call makes the sums of %v", t.gradient)
		}
	}
	return nil
}
