package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// windowFilterGrad is a filter's gradient from windows' gradients: a block for 32 filters and some
// taps, of each slice of the images. The ordinary cores have kernels/windows.cu, the tensor cores
// kernels/windowproduct.cuh.
type windowFilterGrad struct {
	*product
	shape               convShape
	mma                 Precision // of the tensor cores, or none
	taps                int       // of a block
	slices, sliceImages int       // images of a slice
}

// Of the kernels' blocks.
const (
	windowFilters  = 32
	windowWarps    = 4
	windowsPerTile = 32
	mmaTaps        = 32
	mmaWarps       = 8
	mmaWindows     = 16       // windows
	mmaImageBytes  = 24 << 10 // bytes of images in shared memory, if there are several
)

// windowTaps are the taps of a block for which the ordinary cores have kernels.
var windowTaps = []int{9, 27}

// The cycles in which a multiprocessor, which reads 32 words of shared memory in each, brings a
// window of 32 filters, by estimate, and reads what a tap meets.
var (
	cyclesPerWindow = 8.0
	cyclesPerTap    = 1.0
)

// speedWindowMMA is that of the tensor cores' loop, of which a multiprocessor's eight warps issue
// an instruction each in two cycles: 0.85 of that with two blocks, alone as other blocks of eight
// warps (tilesFP32), by estimate.
var speedWindowMMA = speed{full: 0.85, single: 0.65}

// windows are those of an image's plane.
func (s convShape) windows() int { return s.P / 2 * (s.Q / 2) }

// apart are the words between the rows and between the channels of an image in shared memory, if a
// line of the filter has so many: eight neighbouring ones are in different banks, and so are
// windows two apart, then.
func (s convShape) sharedStrides(words int) (row, channel int) {
	const banks = 8
	upTo := func(n, remainder int) int { return n + ((remainder-n)%banks+banks)%banks }
	row = upTo(s.packImage().columns, words)
	return row, upTo(s.packImage().rows*row, s.R*words)
}

// canUseWindowMMA says whether there are kernels for windows on the tensor cores.
func (g *product) canUseWindowMMA(p *planner) bool {
	precise := p.Precision == TF32 || p.Precision == BF16
	if !g.conv || g.out.Buffer.DType != tensor.Float32 || p.Capability < SM80 || !precise {
		return false
	}
	s := convShapeOf(g)
	return s.P%2+s.Q%2 == 0 && s.windows()%4 == 0
}

// together are how many of each images a block of the tensor cores has in shared memory, with their
// channels so many words apart.
func (s convShape) imagesPerBlock(each, channel int) int {
	return max(1, min(each, mmaImageBytes/(4*s.C*channel)))
}

func (f *windowFilterGrad) imagesPerRound() int {
	_, channel := f.shape.sharedStrides(f.shape.S)
	return f.shape.imagesPerBlock(f.sliceImages, channel)
}

// shared is a block's bytes: an image, and each warp's windows with their places; for the tensor
// cores images and places, or afterwards each warp's sums.
func (f *windowFilterGrad) shared() int {
	if f.mma != "" {
		_, channel := f.shape.sharedStrides(f.shape.S)
		return max(4*(ceilDiv(f.shape.windows(), mmaWindows)*mmaWindows+f.imagesPerRound()*f.shape.C*channel), 4*mmaWarps*windowFilters*mmaTaps)
	}
	size := f.out.Buffer.DType.Size()
	return size*f.shape.C*f.shape.packImage().rows*f.shape.packImage().columns + (size+tensor.Int32.Size())*windowWarps*windowFilters*(windowsPerTile+1)
}

// blocks are those of a slice.
func (f *windowFilterGrad) blocks() int {
	return ceilDiv(f.shape.K, windowFilters) * ceilDiv(f.shape.C*f.shape.taps(), f.taps)
}

// cut finds the taps and slices that are best for one chain, and their cycles.
func (f *windowFilterGrad) split(p *planner) (least float64) {
	best := *f
	least = math.Inf(1)
	taps := windowTaps
	if f.mma != "" {
		taps = []int{mmaTaps}
	}
	for _, f.taps = range taps {
		for f.slices = 1; f.slices <= f.shape.B; f.slices++ {
			f.sliceImages = ceilDiv(f.shape.B, f.slices)
			if cost := f.cost(p, 1) + f.sumCost(1); cost < least && f.sliceImages*(f.slices-1) < f.shape.B && f.shared() <= p.Shared {
				best, least = *f, cost
			}
		}
	}
	*f = best
	return least
}

// sumCost estimates the cycles of the kernel that adds the slices.
func (f *windowFilterGrad) sumCost(chains int) float64 {
	return split{slices: f.slices, parallel: f.slices > 1}.sumCost(f.product, chains)
}

// cost estimates the cycles of the kernel.
func (f *windowFilterGrad) cost(p *planner, chains int) float64 {
	blocks := f.blocks() * f.slices * chains
	if f.mma == "" {
		share := ceilDiv(blocks, max(1, p.Multiprocessors))
		tiles := ceilDiv(f.shape.windows(), windowsPerTile)
		return float64(share*f.sliceImages*tiles*windowsPerTile)*(cyclesPerWindow+cyclesPerTap*float64(f.taps)) + cyclesPerWave
	}
	const resident = 2
	bytes := float64(f.sliceImages * f.shape.windows() * windowFilters * (tensor.Float32.Size() + tensor.Uint8.Size()))
	return speedWindowMMA.cycles(p, blocks, resident, f.shape.mmaCycles(f.symbol(), f.sliceImages, f.imagesPerRound()), bytes)
}

// mmaCycles are the cycles in which a multiprocessor issues the loop of a kernel on the tensor
// cores for each images, so many together.
func (s convShape) mmaCycles(symbol string, each, together int) float64 {
	rounds := 0
	for left := each; left > 0; left -= together {
		rounds += ceilDiv(min(left, together)*ceilDiv(s.windows(), mmaWindows), mmaWarps)
	}
	return float64(rounds*mmaWarps*kernels.Loops[symbol].Slots) / 4
}

// symbol is the kernel.
func (f *windowFilterGrad) symbol() string {
	if f.mma != "" {
		return "conv2d_windows_filter_" + string(f.mma)
	}
	return fmt.Sprintf("conv2d_windows_filter_%d_%s", f.taps, f.out.Buffer.DType.Suffix())
}

// otherwise is the least that a filter's gradient costs one chain without windows.
func (g *product) filterGradCostWithoutWindows(p *planner) float64 {
	cost := g.costUnpacked(p)
	if on := newPackedFilterGrad(p, g); g.canPack(p) {
		if _, _, fits := on.split(p); fits && on.costWithPacking(p) < cost {
			cost = on.costWithPacking(p)
		}
	}
	return cost
}

// asWindowFilterGrad is the filter's gradient from windows by the better kind of cores, cut, and
// its cycles.
func (g *product) asWindowFilterGrad(p *planner) (f *windowFilterGrad, least float64) {
	f = &windowFilterGrad{product: g, shape: convShapeOf(g)}
	least = f.split(p)
	if g.canUseWindowMMA(p) {
		on := &windowFilterGrad{product: g, shape: f.shape, mma: p.Precision}
		if cycles := on.split(p); cycles < least {
			f, least = on, cycles
		}
	}
	return f, least
}

// lowerWindowFilterGrad are the calls of a filter's gradient whose operand windows spread out, or
// nil if it is better without. That is decided as for one chain: the order of sums is another one.
func (g *product) lowerWindowFilterGrad(p *planner) []Call {
	if !g.conv || !g.filterGrad {
		return nil
	}
	shape := convShapeOf(g)
	s := p.unpoolGradOf(g.operands[0].Buffer, shape.P*shape.Q)
	if s == nil || s.width != shape.Q/2 {
		return nil
	}
	f, least := g.asWindowFilterGrad(p)
	if least >= g.filterGradCostWithoutWindows(p) {
		return nil
	}
	p.summedUnpool = s
	target := g.out
	if f.slices > 1 {
		target = f.target(p)
	}
	t := p.fusedSum(g.operands[0].Buffer, shape.P*shape.Q, shape.K)
	calls := f.lower(p, s, target, g.operands[1], t)
	if t != nil {
		t.alone = f.sumAlone(t, s)
	}
	if f.slices > 1 {
		calls = slices.Insert(calls, 1, g.sumSlices(p, target.Buffer, f.slices))
	}
	return calls
}

// target is where the slices' sums go.
func (f *windowFilterGrad) target(p *planner) tensor.Argument {
	return tensor.Out(p.workBuffer(f.out.Buffer.DType, f.slices*f.rows*f.columns))
}

// total is the geometry of a total's launch by itself whose sums these calls leave in a step: the
// same product, of whatever images.
func (f *windowFilterGrad) sumAlone(t *biasGradSum, s *unpoolGrad) lowering {
	return func(p *planner, l *tensor.Launch) []Call {
		return s.alone(p, l, func(p *planner, l *tensor.Launch) []Call {
			x := f.operands[1].Buffer
			return f.lower(p, p.unpoolGrads[0], f.target(p), tensor.In(p.workBuffer(x.DType, x.Elements)), t.forLaunch(l))
		})
	}
}

// calls multiply images x by windows' gradients, slice by slice, and leave the total if there is
// one.
func (f *windowFilterGrad) lower(p *planner, s *unpoolGrad, target, x tensor.Argument, t *biasGradSum) []Call {
	sums, summed, sum := x, 0, []Call(nil)
	if t != nil {
		sums, sum = t.partialSums(p, f.slices)
		summed = 1
	}
	arguments := append([]tensor.Argument{target, s.windows, tensor.In(s.argmax), x, sums}, f.sizes...)
	arguments, threads := append(arguments, tensor.Int(summed), tensor.Int(f.sliceImages)), warp*windowWarps
	if f.mma != "" {
		row, channel := f.shape.sharedStrides(f.shape.S)
		arguments, threads = append(arguments, tensor.Int(f.imagesPerRound()), tensor.Int(row), tensor.Int(channel)), warp*mmaWarps
	}
	return append([]Call{{
		Symbol: f.symbol(), Blocks: [2]int{f.blocks(), f.slices}, Threads: threads, Shared: f.shared(), Arguments: arguments, Cycles: f.cost(p, p.Chains),
	}}, sum...)
}
