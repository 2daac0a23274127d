package cuda

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// packedFilter is the gradient of a convolution's filter on packed copies: a block for each
// filterRows filters, block of channels and few taps, of each slice of the pixels.
type packedFilter struct {
	*product
	shape           sizes
	image, gradient packing
	pixels          pixels
	warps           int // of a block, each with a tap
	slices, each    int // pixels of a slice
}

func filterOnPacked(p *placement, g *product) *packedFilter {
	s := sizesOf(g)
	x := s.image()
	f := &packedFilter{product: g, shape: s, image: x, gradient: s.alone(), pixels: pixels{
		packing: x, P: s.P, Q: s.Q, strideH: s.strideH, strideW: s.strideW, taps: s.taps(), across: s.S, down: s.dilationH * x.columns, right: s.dilationW,
	}}
	f.warps = ceil(f.pixels.taps, ceil(f.pixels.taps, filterWidth/numbersOf(p.precision)))
	return f
}

// size is the lines of the image that a stage has: the most, and the mean.
func (f *packedFilter) size() (most int, mean float64) {
	reach := 0
	for group := 0; group < f.pixels.taps; group += f.warps {
		low, high := math.MaxInt, 0
		for tap := group; tap < min(group+f.warps, f.pixels.taps); tap++ {
			at := tap/f.pixels.across*f.pixels.down + tap%f.pixels.across*f.pixels.right
			low, high = min(low, at), max(high, at)
		}
		reach = max(reach, high-low)
	}
	return f.pixels.lines(stagePixels, reach)
}

// leftBytes is a pixel's line of filterRows filters in shared memory, with what keeps it apart.
func leftBytes(p *placement) int {
	return filterRows/numbersOf(p.precision)*lineBytes + apartBytes - lineBytes
}

// shared is a block's bytes: the places of four stages' pixels, and two stages of both operands.
func (f *packedFilter) shared(p *placement) int {
	const bothPlaces = 8
	size, _ := f.size()
	return 4*stagePixels*bothPlaces + 2*stagePixels*leftBytes(p) + 2*size*apartBytes
}

// width is the channels of a tap in the workspace, in whole lines.
func (f *packedFilter) width(p *placement) int {
	return ceil(f.shape.C, numbersOf(p.precision)) * numbersOf(p.precision)
}

// blocks are those of a slice.
func (f *packedFilter) blocks(p *placement) int {
	return ceil(f.pixels.taps, f.warps) * ceil(f.shape.C, numbersOf(p.precision)) * ceil(f.shape.K, filterRows)
}

// cut finds the number of slices as for one chain, and whether each chain's are apart; false if a
// block's shared memory is too large.
func (f *packedFilter) cut(p *placement) (apart bool, cycles float64, fits bool) {
	if f.shared(p) > p.shared {
		return false, 0, false
	}
	cycles = math.Inf(1)
	for _, count := range f.sliceCounts() {
		each := ceil(ceil(f.pixels.count(), count), stagePixels) * stagePixels
		g := *f
		g.each, g.slices = each, ceil(f.pixels.count(), each)
		if cost := g.cost(p, 1, true); cost < cycles {
			cycles, f.each, f.slices = cost, g.each, g.slices
		}
	}
	turns, together := f.cost(p, p.chains, false), f.cost(p, p.chains, true)
	return f.slices > 1 && together <= turns, min(turns, together), true
}

// cost estimates the cycles, the sum of the slices included. A block with fewer warps is not
// faster: each has a part of the multiprocessor to itself.
func (f *packedFilter) cost(p *placement, chains int, apart bool) float64 {
	blocks, depth := f.blocks(p)*chains, ceil(f.pixels.count(), stagePixels)*stagePixels
	if apart {
		blocks, depth = blocks*f.slices, f.each
	}
	work := float64(filterRows*filterWidth*depth) / costPerCycle
	_, lines := f.size()
	bytes := float64(depth/stagePixels) * (float64(stagePixels*filterRows/numbersOf(p.precision)) + lines) * lineBytes
	resident := residentOf(p, f.shared(p), 2)
	return speedOfFilter[p.precision].with(resident).cycles(p, blocks, resident, work, bytes) + f.sumCost(p, chains, apart)
}

// withCopies is the cost of one chain, its copies included.
func (f *packedFilter) withCopies(p *placement) float64 {
	return f.cost(p, 1, true) + f.image.cost(p, 1) + f.gradient.cost(p, 1)
}

// sumCost estimates the cycles of the kernel that adds the slices and puts the channels first.
func (f *packedFilter) sumCost(p *placement, chains int, apart bool) float64 {
	slices := 1
	if apart {
		slices = f.slices
	}
	return costOfLaunch + costOfSlice*float64(slices) + costOfElement*float64(f.shape.K*f.pixels.taps*f.width(p)*slices*chains)
}

func (f *packedFilter) calls(p *placement, apart bool, cycles float64) []call {
	image, gradient, ending := f.image, f.shape.gradient(), string(p.precision)
	chunks := image
	chunks.chunks = imageChunks
	if p.copies[packed{f.operands[1].Buffer, chunks}] != nil {
		// The forward convolution's copy lies in chunks, so the gradient's has to, too.
		image, gradient.chunks, f.gradient.chunks, ending = chunks, imageChunks, imageChunks, "chunks_"+ending
	}
	if p.copies[packed{f.operands[0].Buffer, gradient}] == nil || f.shape.strideH > 1 || f.shape.strideW > 1 || min(gradient.top, gradient.left) < 0 {
		gradient = f.gradient
	}
	dout, calls := p.pack(f.operands[0], gradient)
	x, more := p.pack(f.operands[1], image)
	slices, blocks, target := 1, [2]int{f.blocks(p), 1}, tensor.InOut
	if apart || f.slices == 1 {
		slices, blocks[1], target = f.slices, f.slices, tensor.Out
	}
	width := f.width(p)
	size, _ := f.size()
	partial := p.work(tensor.Float32, slices*f.shape.K*f.pixels.taps*width)
	arguments := []tensor.Argument{target(partial), tensor.In(dout), tensor.In(x)}
	for _, n := range []int{
		f.shape.K, f.image.planes, f.image.rows, f.image.columns, f.pixels.P, f.pixels.Q, f.pixels.strideH, f.pixels.strideW,
		ceil(f.shape.C, numbersOf(p.precision)), f.pixels.taps, f.pixels.across, f.pixels.down, f.pixels.right,
		gradient.rows, gradient.columns, gradient.top*gradient.columns + gradient.left, ceil(f.shape.K, numbersOf(p.precision)), size, f.each,
	} {
		arguments = append(arguments, tensor.Int(n))
	}
	return append(append(calls, more...), call{
		symbol: "conv2d_nhwc_filter_" + ending, blocks: blocks, threads: warp * f.warps, shared: f.shared(p),
		arguments: arguments, cycles: cycles - f.sumCost(p, p.chains, apart),
	}, f.sum(p, partial, slices))
}

// sum adds the slices.
func (f *packedFilter) sum(p *placement, partial *tensor.Buffer, slices int) call {
	return call{
		symbol: "slices_nhwc_f32", blocks: [2]int{f.shape.K * ceil(f.shape.C, warp) * ceil(f.pixels.taps, warp), 1}, threads: stridingThreads,
		arguments: []tensor.Argument{
			f.out, tensor.In(partial), tensor.Int(f.shape.K), tensor.Int(f.pixels.taps), tensor.Int(f.shape.C), tensor.Int(f.width(p)), tensor.Int(slices),
		},
	}
}
