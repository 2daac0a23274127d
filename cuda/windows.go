package cuda

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// spread is the gradient of a convolution's output that a pooling's windows spread out: it is a
// window's gradient at the window's maximum, 0 elsewhere. Kernels of kernels/windows.cuh read it as
// the windows have it, so it is made only before a call that reads it itself.
type spread struct {
	gradient      *tensor.Buffer
	windows       tensor.Argument // their gradients
	which         *tensor.Buffer
	height, width int  // of a plane's windows
	make          call // fills gradient
	made          bool
}

// spreadOf is what the windows of a gradient are, or nil: of planes of that many elements.
func (p *placement) spreadOf(gradient *tensor.Buffer, plane int) *spread {
	for _, s := range p.spreads {
		if s.gradient == gradient && plane == 4*s.height*s.width {
			return s
		}
	}
	return nil
}

// alone are the calls of a launch by itself that sums over windows in a step: they find them in the
// gradient, its argument 1, and sum in the same order, with that geometry.
func (s *spread) alone(p *placement, l *tensor.Launch, with geometry) []call {
	own := *s
	own.gradient = l.Arguments[1].Buffer
	dtype, n := own.gradient.DType, own.gradient.Elements/4
	windows := p.work(dtype, n)
	own.windows, own.which = tensor.In(windows), p.work(tensor.Uint8, n)
	p.spreads = []*spread{&own}
	defer func() { p.spreads = nil }()
	return append([]call{{
		symbol: "windows_of_" + dtype.Suffix(), blocks: [2]int{enough(p, n), 1}, threads: stridingThreads,
		arguments: []tensor.Argument{tensor.Out(windows), tensor.Out(own.which), l.Arguments[1], tensor.Int(n), tensor.Int(s.width)},
	}}, with(p, l)...)
}

// settle has gradients made before the first call that reads them, or that changes what they are
// made of.
func (p *placement) settle(calls []call) (all []call) {
	for _, c := range calls {
		var left []*spread
		for _, s := range p.spreads {
			touched, changed := s.touchedBy(c)
			if touched && !s.made {
				all, s.made = append(all, s.make), true
			}
			if !changed {
				left = append(left, s)
			}
		}
		all, p.spreads = append(all, c), left
	}
	return all
}

// touchedBy says whether a call needs the gradient to be made, and whether windows and gradient
// are the same no more after it.
func (s *spread) touchedBy(c call) (touched, changed bool) {
	for _, a := range c.arguments {
		if a.Buffer == nil {
			continue
		}
		own := a.Buffer.Overlaps(s.gradient)
		writes := a.Access&tensor.Write != 0 && (own || a.Buffer.Overlaps(s.windows.Buffer) || a.Buffer.Overlaps(s.which))
		touched, changed = touched || own || writes, changed || writes
	}
	return touched, changed
}

// ofWindows is a call, of windows if it sums what these spread out: windows' gradients and notes
// are in the place of its argument 1.
func (p *placement) ofWindows(c tensor.Call) tensor.Call {
	if grid, is := c.Grid.(tensor.Blocks); is && grid.Plane > 0 {
		if s := p.spreadOf(c.Arguments[1].Buffer, grid.Plane); s != nil {
			p.summed, c.Kernel = s, "windows_"+c.Kernel
			c.Arguments = slices.Replace(slices.Clone(c.Arguments), 1, 2, s.windows, tensor.In(s.which))
		}
	}
	return c
}
