package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// windowFilterGrad is the gradient of a pooled convolution's filter, computed from the windows: the
// gradient of the convolution's output is not zero at one pixel of each window, so a quarter of the
// multiplications is enough. It pays for first layers, with few channels and taps. A block computes
// 32 filters x some taps, for one slice of the images. The kernels are in kernels/windows.cu for
// the ordinary cores, and in kernels/windowproduct.cuh for the tensor cores.
type windowFilterGrad struct {
	*product
	shape       convShape
	mma         Precision // of the tensor cores, or "" for the ordinary cores
	taps        int       // of a block
	slices      int
	sliceImages int
}

// Sizes in the kernels.
const (
	windowFilters  = 32
	windowWarps    = 4
	windowsPerTile = 32
	mmaTaps        = 32
	mmaWarps       = 8
	mmaWindows     = 16       // windows that a warp multiplies at once
	mmaImageBytes  = 24 << 10 // bytes of images in shared memory, unless a single one is larger
)

// windowTaps are the numbers of taps per block for which the ordinary cores have kernels.
var windowTaps = []int{9, 27}

// Estimates for the ordinary cores, which read 32 words of shared memory per cycle: the cycles to
// load a window of 32 filters, and those to read what one tap multiplies.
var (
	cyclesPerWindow = 8.0
	cyclesPerTap    = 1.0
)

// speedWindowMMA is an estimate for the tensor cores' loop, relative to eight warps that issue an
// instruction each in two cycles: 0.85 of that with two blocks; single is the same as for other
// blocks of eight warps (tilesFloat32).
var speedWindowMMA = speed{full: 0.85, single: 0.65}

// windows is the number of pooling windows of an image.
func (s convShape) windows() int { return s.P / 2 * (s.Q / 2) }

// sharedStrides returns the strides, in words of shared memory, between the rows and between the
// channels of an image, for filter rows of words words. Modulo 8 banks, the first is congruent to
// words and the second to R*words, so that eight neighbouring taps are in different banks, as are
// windows two apart.
func (s convShape) sharedStrides(words int) (row, channel int) {
	const banks = 8
	upTo := func(n, remainder int) int { return n + ((remainder-n)%banks+banks)%banks }
	row = upTo(s.packImage().columns, words)
	return row, upTo(s.packImage().rows*row, s.R*words)
}

// canUseWindowMMA reports whether the tensor cores have kernels on windows for the product.
func (g *product) canUseWindowMMA(p *planner) bool {
	precise := p.Precision == TF32 || p.Precision == BF16
	if !g.conv || g.out.Buffer.DType != tensor.Float32 || p.Capability < SM80 || !precise {
		return false
	}
	s := convShapeOf(g)
	return s.P%2+s.Q%2 == 0 && s.windows()%4 == 0
}

// imagesPerBlock returns how many of its each images a block holds in shared memory at once, if
// their channels are channel words apart.
func (s convShape) imagesPerBlock(each, channel int) int {
	return max(1, min(each, mmaImageBytes/(4*s.C*channel)))
}

func (f *windowFilterGrad) imagesPerRound() int {
	_, channel := f.shape.sharedStrides(f.shape.S)
	return f.shape.imagesPerBlock(f.sliceImages, channel)
}

// shared is a block's shared memory: an image, and each warp's windows with their positions. For
// the tensor cores it is images and positions, or each warp's sums at the end.
func (f *windowFilterGrad) shared() int {
	if f.mma != "" {
		_, channel := f.shape.sharedStrides(f.shape.S)
		return max(4*(ceilDiv(f.shape.windows(), mmaWindows)*mmaWindows+f.imagesPerRound()*f.shape.C*channel), 4*mmaWarps*windowFilters*mmaTaps)
	}
	size := f.out.Buffer.DType.Size()
	return size*f.shape.C*f.shape.packImage().rows*f.shape.packImage().columns + (size+tensor.Int32.Size())*windowWarps*windowFilters*(windowsPerTile+1)
}

// blocks is the number of blocks of a slice.
func (f *windowFilterGrad) blocks() int {
	return ceilDiv(f.shape.K, windowFilters) * ceilDiv(f.shape.C*f.shape.taps(), f.taps)
}

// split sets the taps and slices that are best for one chain, and returns their cycles.
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

// cost estimates the cycles of the kernel, without the sum of the slices.
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

// mmaCycles returns the cycles in which a multiprocessor issues the loop of a tensor core kernel
// for a block. The block has each images, and holds together of them in shared memory at a time.
func (s convShape) mmaCycles(symbol string, each, together int) float64 {
	roundsOf := func(images int) int { return ceilDiv(images*ceilDiv(s.windows(), mmaWindows), mmaWarps) }
	rounds := each/together*roundsOf(together) + roundsOf(each%together)
	return float64(rounds*mmaWarps*kernels.Loops[symbol].Slots) / 4
}

// symbol is the kernel's name.
func (f *windowFilterGrad) symbol() string {
	if f.mma != "" {
		return "conv2d_windows_filter_" + string(f.mma)
	}
	return fmt.Sprintf("conv2d_windows_filter_%d_%s", f.taps, f.out.Buffer.DType.Suffix())
}

// filterGradCostWithoutWindows estimates the lowest cost of a filter's gradient for one chain
// without these kernels.
func (g *product) filterGradCostWithoutWindows(p *planner) float64 {
	cost := g.costUnpacked(p)
	if on := newPackedFilterGrad(p, g); g.canPack(p) {
		if _, _, fits := on.split(p); fits && on.costWithPacking(p) < cost {
			cost = on.costWithPacking(p)
		}
	}
	return cost
}

// asWindowFilterGrad returns the filter's gradient by the better kind of cores, split, and its
// cycles.
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

// lowerWindowFilterGrad returns the calls of a filter's gradient by windows, or nil if it is
// cheaper without. The choice changes the order of sums, so it is made as for one chain.
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
		t.separate = f.sumSeparately(t, s)
	}
	if f.slices > 1 {
		calls = slices.Insert(calls, 1, g.sumSlices(p, target.Buffer, f.slices))
	}
	return calls
}

// target returns workspace for the slices' sums.
func (f *windowFilterGrad) target(p *planner) tensor.Argument {
	return tensor.Out(p.workBuffer(f.out.Buffer.DType, f.slices*f.rows*f.columns))
}

// sumSeparately returns the separate lowering of a bias gradient whose sums these calls make in a
// step. It computes the same product, with arbitrary images, so that the sums have the same order,
// and ignores the product.
func (f *windowFilterGrad) sumSeparately(t *biasGradSum, s *unpoolGrad) lowering {
	return func(p *planner, l *tensor.Launch) []Call {
		return s.separate(p, l, func(p *planner, l *tensor.Launch) []Call {
			x := f.operands[1].Buffer
			return f.lower(p, p.unpoolGrads[0], f.target(p), tensor.In(p.workBuffer(x.DType, x.Elements)), t.forLaunch(l))
		})
	}
}

// lower returns the calls that multiply images x by the windows' gradients, slice by slice, and
// that make the sums t if it is not nil.
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
