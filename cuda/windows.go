package cuda

import (
	"fmt"
	"math"
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

// alone is the geometry of a launch by itself that sums over windows in a step: it finds them in
// the gradient, its argument 1, and sums in the same order.
func (s *spread) alone(p *placement, l *tensor.Launch) []call {
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
	}}, callsOf(p, l)...)
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

// filterOfWindows is a filter's gradient as kernels/windows.cu makes it: a block for 32 filters and
// some taps, of each slice of the images.
type filterOfWindows struct {
	*product
	shape        sizes
	taps         int // of a block
	slices, each int // images of a slice
}

// Of the kernel's blocks.
const (
	windowFilters = 32
	windowWarps   = 4
	windowsOfTile = 32
)

// windowTaps are the taps of a block for which there are kernels.
var windowTaps = []int{9, 27}

// The cycles in which a multiprocessor, which reads 32 words of shared memory in each, brings a
// window of 32 filters, by estimate, and reads what a tap meets.
var (
	costOfWindow = 8.0
	costOfTap    = 1.0
)

// shared is a block's bytes: an image, and each warp's windows with their places.
func (f *filterOfWindows) shared() int {
	s, size := f.shape, f.out.Buffer.DType.Size()
	image := s.C * ((s.P-1)*s.strideH + (s.R-1)*s.dilationH + 1) * ((s.Q-1)*s.strideW + (s.S-1)*s.dilationW + 1)
	return size*image + (size+tensor.Int32.Size())*windowWarps*windowFilters*(windowsOfTile+1)
}

// blocks are those of a slice.
func (f *filterOfWindows) blocks() int {
	return ceil(f.shape.K, windowFilters) * ceil(f.shape.C*f.shape.taps(), f.taps)
}

// cut finds the taps and slices that are best for one chain, and their cycles.
func (f *filterOfWindows) cut(p *placement) (least float64) {
	best := *f
	least = math.Inf(1)
	for _, f.taps = range windowTaps {
		for f.slices = 1; f.slices <= f.shape.B; f.slices++ {
			f.each = ceil(f.shape.B, f.slices)
			if cost := f.cost(p, 1) + f.sumCost(1); cost < least && f.each*(f.slices-1) < f.shape.B {
				best, least = *f, cost
			}
		}
	}
	*f = best
	return least
}

// sumCost estimates the cycles of the kernel that adds the slices.
func (f *filterOfWindows) sumCost(chains int) float64 {
	return cut{slices: f.slices, apart: f.slices > 1}.sumCost(f.product, chains)
}

// cost estimates the cycles of the kernel.
func (f *filterOfWindows) cost(p *placement, chains int) float64 {
	share := ceil(f.blocks()*f.slices*chains, max(1, p.multiprocessors))
	tiles := ceil(f.shape.P/2*(f.shape.Q/2), windowsOfTile)
	return float64(share*f.each*tiles*windowsOfTile)*(costOfWindow+costOfTap*float64(f.taps)) + costOfWave
}

// otherwise is the least that a filter's gradient costs one chain without windows.
func (g *product) otherwise(p *placement) float64 {
	cost := g.plain(p)
	if on := filterOnPacked(p, g); g.mayPack(p) {
		if _, _, fits := on.cut(p); fits && on.withCopies(p) < cost {
			cost = on.withCopies(p)
		}
	}
	return cost
}

// windowCalls are the calls of a filter's gradient whose operand windows spread out, or nil if it
// is better without. That is decided as for one chain: the order of sums is another one.
func (g *product) windowCalls(p *placement) []call {
	if !g.images || !g.filter {
		return nil
	}
	f := &filterOfWindows{product: g, shape: sizesOf(g)}
	s := p.spreadOf(g.operands[0].Buffer, f.shape.P*f.shape.Q)
	if s == nil || s.width != f.shape.Q/2 || f.shared() > p.shared {
		return nil
	}
	if f.cut(p) >= g.otherwise(p) {
		return nil
	}
	p.summed = s
	target := g.out
	if f.slices > 1 {
		target = tensor.Out(p.work(g.out.Buffer.DType, f.slices*g.rows*g.columns))
	}
	arguments := append([]tensor.Argument{target, s.windows, tensor.In(s.which), g.operands[1]}, g.sizes...)
	calls := []call{{
		symbol: fmt.Sprintf("conv2d_windows_filter_%d_%s", f.taps, g.out.Buffer.DType.Suffix()), blocks: [2]int{f.blocks(), f.slices},
		threads: warp * windowWarps, shared: f.shared(), arguments: append(arguments, tensor.Int(f.each)), cycles: f.cost(p, p.chains),
	}}
	if f.slices > 1 {
		calls = append(calls, g.sum(p, target.Buffer, f.slices))
	}
	return calls
}
