package cuda

import (
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// filterOfWindows is a filter's gradient from windows' gradients: a block for 32 filters and some
// taps, of each slice of the images. The ordinary cores have kernels/windows.cu, the tensor cores
// kernels/windowproduct.cuh.
type filterOfWindows struct {
	*product
	shape        sizes
	cores        Precision // of the tensor cores, or none
	taps         int       // of a block
	slices, each int       // images of a slice
}

// Of the kernels' blocks.
const (
	windowFilters = 32
	windowWarps   = 4
	windowsOfTile = 32
	coresTaps     = 32
	coresWarps    = 8
	coresGroup    = 16       // windows
	coresImages   = 24 << 10 // bytes of images in shared memory, if there are several
)

// windowTaps are the taps of a block for which the ordinary cores have kernels.
var windowTaps = []int{9, 27}

// The cycles in which a multiprocessor, which reads 32 words of shared memory in each, brings a
// window of 32 filters, by estimate, and reads what a tap meets.
var (
	costOfWindow = 8.0
	costOfTap    = 1.0
)

// coresSpeed is that of the tensor cores' loop, of which a multiprocessor's eight warps issue an
// instruction each in two cycles: 0.85 of that with two blocks, alone as other blocks of eight
// warps (tilesFP32), by estimate.
var coresSpeed = speed{full: 0.85, alone: 0.65}

// windows are those of an image's plane.
func (s sizes) windows() int { return s.P / 2 * (s.Q / 2) }

// apart are the words between the rows and between the channels of an image in shared memory, if a
// line of the filter has so many: eight neighbouring ones are in different banks, and so are
// windows two apart, then.
func (s sizes) apart(words int) (row, channel int) {
	const banks = 8
	upTo := func(n, remainder int) int { return n + ((remainder-n)%banks+banks)%banks }
	row = upTo(s.image().columns, words)
	return row, upTo(s.image().rows*row, s.R*words)
}

// onCores says whether there are kernels for windows on the tensor cores.
func (g *product) onCores(p *placement) bool {
	precise := p.precision == TF32 || p.precision == BF16
	if !g.images || g.out.Buffer.DType != tensor.Float32 || p.capability < asynchronous || !precise {
		return false
	}
	s := sizesOf(g)
	return s.P%2+s.Q%2 == 0 && s.windows()%4 == 0
}

// together are how many of each images a block of the tensor cores has in shared memory, with their
// channels so many words apart.
func (s sizes) together(each, channel int) int {
	return max(1, min(each, coresImages/(4*s.C*channel)))
}

func (f *filterOfWindows) together() int {
	_, channel := f.shape.apart(f.shape.S)
	return f.shape.together(f.each, channel)
}

// shared is a block's bytes: an image, and each warp's windows with their places; for the tensor
// cores images and places, or afterwards each warp's sums.
func (f *filterOfWindows) shared() int {
	if f.cores != "" {
		_, channel := f.shape.apart(f.shape.S)
		return max(4*(ceil(f.shape.windows(), coresGroup)*coresGroup+f.together()*f.shape.C*channel), 4*coresWarps*windowFilters*coresTaps)
	}
	size := f.out.Buffer.DType.Size()
	return size*f.shape.C*f.shape.image().rows*f.shape.image().columns + (size+tensor.Int32.Size())*windowWarps*windowFilters*(windowsOfTile+1)
}

// blocks are those of a slice.
func (f *filterOfWindows) blocks() int {
	return ceil(f.shape.K, windowFilters) * ceil(f.shape.C*f.shape.taps(), f.taps)
}

// cut finds the taps and slices that are best for one chain, and their cycles.
func (f *filterOfWindows) cut(p *placement) (least float64) {
	best := *f
	least = math.Inf(1)
	taps := windowTaps
	if f.cores != "" {
		taps = []int{coresTaps}
	}
	for _, f.taps = range taps {
		for f.slices = 1; f.slices <= f.shape.B; f.slices++ {
			f.each = ceil(f.shape.B, f.slices)
			if cost := f.cost(p, 1) + f.sumCost(1); cost < least && f.each*(f.slices-1) < f.shape.B && f.shared() <= p.shared {
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
	blocks := f.blocks() * f.slices * chains
	if f.cores == "" {
		share := ceil(blocks, max(1, p.multiprocessors))
		tiles := ceil(f.shape.windows(), windowsOfTile)
		return float64(share*f.each*tiles*windowsOfTile)*(costOfWindow+costOfTap*float64(f.taps)) + costOfWave
	}
	const resident = 2
	bytes := float64(f.each * f.shape.windows() * windowFilters * (tensor.Float32.Size() + tensor.Uint8.Size()))
	return coresSpeed.cycles(p, blocks, resident, f.shape.coresWork(f.symbol(), f.each, f.together()), bytes)
}

// coresWork are the cycles in which a multiprocessor issues the loop of a kernel on the tensor
// cores for each images, so many together.
func (s sizes) coresWork(symbol string, each, together int) float64 {
	rounds := 0
	for left := each; left > 0; left -= together {
		rounds += ceil(min(left, together)*ceil(s.windows(), coresGroup), coresWarps)
	}
	return float64(rounds*coresWarps*kernels.Loops[symbol].Slots) / 4
}

// symbol is the kernel.
func (f *filterOfWindows) symbol() string {
	if f.cores != "" {
		return "conv2d_windows_filter_" + string(f.cores)
	}
	return fmt.Sprintf("conv2d_windows_filter_%d_%s", f.taps, f.out.Buffer.DType.Suffix())
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

// onWindows is the filter's gradient from windows by the better kind of cores, cut, and its cycles.
func (g *product) onWindows(p *placement) (f *filterOfWindows, least float64) {
	f = &filterOfWindows{product: g, shape: sizesOf(g)}
	least = f.cut(p)
	if g.onCores(p) {
		on := &filterOfWindows{product: g, shape: f.shape, cores: p.precision}
		if cycles := on.cut(p); cycles < least {
			f, least = on, cycles
		}
	}
	return f, least
}

// windowCalls are the calls of a filter's gradient whose operand windows spread out, or nil if it
// is better without. That is decided as for one chain: the order of sums is another one.
func (g *product) windowCalls(p *placement) []call {
	if !g.images || !g.filter {
		return nil
	}
	shape := sizesOf(g)
	s := p.spreadOf(g.operands[0].Buffer, shape.P*shape.Q)
	if s == nil || s.width != shape.Q/2 {
		return nil
	}
	f, least := g.onWindows(p)
	if least >= g.otherwise(p) {
		return nil
	}
	p.summed = s
	target := g.out
	if f.slices > 1 {
		target = f.target(p)
	}
	t := p.passing(g.operands[0].Buffer, shape.P*shape.Q, shape.K)
	calls := f.calls(p, s, target, g.operands[1], t)
	if t != nil {
		t.alone = f.total(t, s)
	}
	if f.slices > 1 {
		calls = slices.Insert(calls, 1, g.sum(p, target.Buffer, f.slices))
	}
	return calls
}

// target is where the slices' sums go.
func (f *filterOfWindows) target(p *placement) tensor.Argument {
	return tensor.Out(p.work(f.out.Buffer.DType, f.slices*f.rows*f.columns))
}

// total is the geometry of a total's launch by itself whose sums these calls leave in a step: the
// same product, of whatever images.
func (f *filterOfWindows) total(t *total, s *spread) geometry {
	return func(p *placement, l *tensor.Launch) []call {
		return s.alone(p, l, func(p *placement, l *tensor.Launch) []call {
			x := f.operands[1].Buffer
			return f.calls(p, p.spreads[0], f.target(p), tensor.In(p.work(x.DType, x.Elements)), t.of(l))
		})
	}
}

// calls multiply images x by windows' gradients, slice by slice, and leave the total if there is
// one.
func (f *filterOfWindows) calls(p *placement, s *spread, target, x tensor.Argument, t *total) []call {
	sums, summed, sum := x, 0, []call(nil)
	if t != nil {
		sums, sum = t.table(p, f.slices)
		summed = 1
	}
	arguments := append([]tensor.Argument{target, s.windows, tensor.In(s.which), x, sums}, f.sizes...)
	arguments, threads := append(arguments, tensor.Int(summed), tensor.Int(f.each)), warp*windowWarps
	if f.cores != "" {
		row, channel := f.shape.apart(f.shape.S)
		arguments, threads = append(arguments, tensor.Int(f.together()), tensor.Int(row), tensor.Int(channel)), warp*coresWarps
	}
	return append([]call{{
		symbol: f.symbol(), blocks: [2]int{f.blocks(), f.slices}, threads: threads, shared: f.shared(), arguments: arguments, cycles: f.cost(p, p.chains),
	}}, sum...)
}
