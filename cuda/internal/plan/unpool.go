package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// spread is the gradient of a convolution's output that a pooling's windows spread out: it is a
// window's gradient at the window's maximum, 0 elsewhere. Kernels of kernels/windows.cuh read it as
// the windows have it, so it is made only before a call that reads it itself.
type unpoolGrad struct {
	gradient      *tensor.Buffer
	windows       tensor.Argument // their gradients
	argmax        *tensor.Buffer
	height, width int  // of a plane's windows
	make          Call // fills gradient
	made          bool
}

// unpoolGradOf is what the windows of a gradient are, or nil: of planes of that many elements.
func (p *planner) unpoolGradOf(gradient *tensor.Buffer, plane int) *unpoolGrad {
	for _, s := range p.unpoolGrads {
		if s.gradient == gradient && plane == 4*s.height*s.width {
			return s
		}
	}
	return nil
}

// alone are the calls of a launch by itself that sums over windows in a step: they find them in the
// gradient, its argument 1, and sum in the same order, with that geometry.
func (s *unpoolGrad) alone(p *planner, l *tensor.Launch, with lowering) []Call {
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

// settle has gradients made before the first call that reads them, or that changes what they are
// made of.
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

// usedBy says whether a call needs the gradient to be made, and whether windows and gradient
// are the same no more after it.
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

// sumOverWindows is a call, of windows if it sums what these spread out: windows' gradients and
// notes are in the place of its argument 1.
func (p *planner) sumOverWindows(c tensor.Call) tensor.Call {
	if grid, is := c.Grid.(tensor.Blocks); is && grid.Plane > 0 {
		if s := p.unpoolGradOf(c.Arguments[1].Buffer, grid.Plane); s != nil {
			p.summedUnpool, c.Kernel = s, "windows_"+c.Kernel
			c.Arguments = slices.Replace(slices.Clone(c.Arguments), 1, 2, s.windows, tensor.In(s.argmax))
		}
	}
	return c
}
