package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// unpoolGradOf returns a gradient's compact form, if it has one and its planes have plane elements.
func (p *planner) unpoolGradOf(gradient *tensor.Buffer, plane int) *unpoolGrad {
	for _, s := range p.unpoolGrads {
		if s.gradient == gradient && plane == 4*s.height*s.width {
			return s
		}
	}
	return nil
}

// separate lowers on its own a launch that sums over windows in a step. A kernel first finds the
// windows in the full gradient, the launch's argument 1. The lowering with then makes the calls
// that sum over them in the same order as in the step.
func (s *unpoolGrad) separate(p *planner, l *tensor.Launch, with lowering) []Call {
	own := *s
	own.gradient = l.Arguments[1].Buffer
	dtype, n := own.gradient.DType, own.gradient.Elements/4
	windows := p.workBuffer(dtype, n)
	own.windows, own.argmax = tensor.In(windows), p.workBuffer(tensor.Uint8, n)
	p.unpoolGrads = []*unpoolGrad{&own}
	defer func() { p.unpoolGrads = nil }()
	return append([]Call{{
		Symbol: "windows_of_" + dtype.Suffix(), Blocks: [2]int{gridSize(p, n), 1}, Threads: GridStrideThreads,
		Arguments: []tensor.Argument{tensor.Out(windows), tensor.Out(own.argmax), l.Arguments[1], tensor.Int(n), tensor.Int(s.width)},
	}}, with(p, l)...)
}

// materialize inserts the calls that write full gradients: before the first call that reads one, or
// that overwrites its compact form.
func (p *planner) materialize(calls []Call) (all []Call) {
	for _, c := range calls {
		var left []*unpoolGrad
		for _, s := range p.unpoolGrads {
			touched, changed := s.usedBy(c)
			if touched && !s.made {
				all, s.made = append(all, s.make), true
			}
			if !changed {
				left = append(left, s)
			}
		}
		all, p.unpoolGrads = append(all, c), left
	}
	return all
}

// usedBy returns whether the full gradient must be written before a call, and whether the call
// changes the gradient or its compact form, so that the two no longer agree.
func (s *unpoolGrad) usedBy(c Call) (touched, changed bool) {
	for _, a := range c.Arguments {
		if a.Buffer == nil {
			continue
		}
		own := a.Buffer.Overlaps(s.gradient)
		writes := a.Access&tensor.Write != 0 && (own || a.Buffer.Overlaps(s.windows.Buffer) || a.Buffer.Overlaps(s.argmax))
		touched, changed = touched || own || writes, changed || writes
	}
	return touched, changed
}

// sumOverWindows returns a call that sums a gradient's planes with its argument 1 replaced by the
// compact form, if there is one. Its kernel is windows_NAME. If planes are single windows, the
// channels' terms are neighbours in memory, and the kernel sums them by columns (columnSums in
// kernels/reduce.cuh).
func (p *planner) sumOverWindows(c tensor.Call) tensor.Call {
	if grid, is := c.Grid.(tensor.Blocks); is && grid.Plane > 0 {
		if s := p.unpoolGradOf(c.Arguments[1].Buffer, grid.Plane); s != nil {
			p.summedUnpool, c.Kernel = s, "windows_"+c.Kernel
			c.Arguments = slices.Replace(slices.Clone(c.Arguments), 1, 2, s.windows, tensor.In(s.argmax))
			if grid.Plane == 4 {
				const columns, threads = 32, 256 // of a block
				grid.Count, grid.Threads = ceilDiv(grid.Count, columns), threads
				c.Grid = grid
			}
		}
	}
	return c
}
