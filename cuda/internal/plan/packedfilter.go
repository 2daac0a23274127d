package plan

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// packedFilterGrad is the gradient of a convolution's filter on packed copies: a product over all
// pixels. A block computes filterRows filters x one block of channels x a few taps, for one slice
// of the pixels.
type packedFilterGrad struct {
	*product
	shape           convShape
	image, gradient packSpec
	pixels          pixelMap
	warps           int // of a block, each with one tap
	slices          int
	slicePixels     int
}

func newPackedFilterGrad(p *planner, g *product) *packedFilterGrad {
	s := convShapeOf(g)
	x := s.packImage()
	f := &packedFilterGrad{product: g, shape: s, image: x, gradient: s.packGradientUnpadded(), pixels: pixelMap{
		packSpec: x, P: s.P, Q: s.Q, strideH: s.strideH, strideW: s.strideW,
		taps: s.taps(), tapColumns: s.S, tapRowStride: s.dilationH * x.columns, tapColumnStride: s.dilationW,
	}}
	f.warps = ceilDiv(f.pixels.taps, ceilDiv(f.pixels.taps, filterChannels/channelsPerLine(p.Precision)))
	return f
}

// stageLines returns the maximum and the mean number of lines of the image that a stage reads.
func (f *packedFilterGrad) stageLines() (most int, mean float64) {
	reach := 0
	for group := 0; group < f.pixels.taps; group += f.warps {
		low, high := math.MaxInt, 0
		for tap := group; tap < min(group+f.warps, f.pixels.taps); tap++ {
			at := tap/f.pixels.tapColumns*f.pixels.tapRowStride + tap%f.pixels.tapColumns*f.pixels.tapColumnStride
			low, high = min(low, at), max(high, at)
		}
		reach = max(reach, high-low)
	}
	return f.pixels.linesPerTile(stagePixels, reach)
}

// gradientLineBytes is the size in shared memory of a pixel's gradient for filterRows filters, with
// the gap that avoids bank conflicts.
func gradientLineBytes(p *planner) int {
	return filterRows/channelsPerLine(p.Precision)*lineBytes + paddedLineBytes - lineBytes
}

// shared is a block's shared memory: the positions of the pixels of four stages, and two stages of
// both operands.
func (f *packedFilterGrad) shared(p *planner) int {
	const bothPlaces = 8
	size, _ := f.stageLines()
	return 4*stagePixels*bothPlaces + 2*stagePixels*gradientLineBytes(p) + 2*size*paddedLineBytes
}

// paddedChannels returns the number of channels rounded up to whole lines, as in the workspace.
func (f *packedFilterGrad) paddedChannels(p *planner) int {
	return ceilDiv(f.shape.C, channelsPerLine(p.Precision)) * channelsPerLine(p.Precision)
}

// blocks is the number of blocks of a slice.
func (f *packedFilterGrad) blocks(p *planner) int {
	return ceilDiv(f.pixels.taps, f.warps) * ceilDiv(f.shape.C, channelsPerLine(p.Precision)) * ceilDiv(f.shape.K, filterRows)
}

// split sets the number of slices, as for one chain, and returns whether each slice gets separate
// blocks for the actual number of chains. fits is false if a block's shared memory is too large.
func (f *packedFilterGrad) split(p *planner) (parallel bool, cycles float64, fits bool) {
	if f.shared(p) > p.Shared {
		return false, 0, false
	}
	cycles = math.Inf(1)
	for _, count := range f.sliceCounts() {
		each := ceilDiv(ceilDiv(f.pixels.count(), count), stagePixels) * stagePixels
		g := *f
		g.slicePixels, g.slices = each, ceilDiv(f.pixels.count(), each)
		if cost := g.cost(p, 1, true); cost < cycles {
			cycles, f.slicePixels, f.slices = cost, g.slicePixels, g.slices
		}
	}
	turns, together := f.cost(p, p.Chains, false), f.cost(p, p.Chains, true)
	return f.slices > 1 && together <= turns, min(turns, together), true
}

// cost estimates the cycles, including the sum of the slices. A block with fewer warps is not
// faster: each warp has a quarter of the multiprocessor to itself.
func (f *packedFilterGrad) cost(p *planner, chains int, parallel bool) float64 {
	blocks, depth := f.blocks(p)*chains, ceilDiv(f.pixels.count(), stagePixels)*stagePixels
	if parallel {
		blocks, depth = blocks*f.slices, f.slicePixels
	}
	work := float64(filterRows*filterChannels*depth) / macsPerCycle
	_, lines := f.stageLines()
	bytes := float64(depth/stagePixels) * (float64(stagePixels*filterRows/channelsPerLine(p.Precision)) + lines) * lineBytes
	resident := residentBlocks(p, f.shared(p), 2)
	return speedPackedFilter[p.Precision].limitedTo(resident).cycles(p, blocks, resident, work, bytes) + f.sumCost(p, chains, parallel)
}

// costWithPacking estimates the cycles for one chain, packing included.
func (f *packedFilterGrad) costWithPacking(p *planner) float64 {
	return f.cost(p, 1, true) + f.image.cost(p) + f.gradient.cost(p)
}

// sumCost estimates the cycles of the kernel that adds the slices and puts the channels first
// again.
func (f *packedFilterGrad) sumCost(p *planner, chains int, parallel bool) float64 {
	slices := 1
	if parallel {
		slices = f.slices
	}
	return CyclesPerLaunch + cyclesPerSlice*float64(slices) + cyclesPerElement*float64(f.shape.K*f.pixels.taps*f.paddedChannels(p)*slices*chains)
}

// lower returns the calls: those that pack the gradient and the image, unless the forward
// convolution has, the products of slices of the pixels, and their sum. If parallel, slices are
// summed side by side.
func (f *packedFilterGrad) lower(p *planner, parallel bool, cycles float64) []Call {
	image, gradient, ending := f.image, f.shape.packGradient(), string(p.Precision)
	chunks := image
	chunks.chunks = imageChunks
	if p.copies[packKey{f.operands[1].Buffer, chunks}] != nil {
		// The forward convolution has made a copy of the image in chunks. The kernel that reads it
		// needs the gradient in chunks, too.
		image, gradient.chunks, f.gradient.chunks, ending = chunks, imageChunks, imageChunks, "chunks_"+ending
	}
	if p.copies[packKey{f.operands[0].Buffer, gradient}] == nil || f.shape.strideH > 1 || f.shape.strideW > 1 || min(gradient.top, gradient.left) < 0 {
		gradient = f.gradient
	}
	dout, calls := p.pack(f.operands[0], gradient)
	x, more := p.pack(f.operands[1], image)
	slices, blocks, target := 1, [2]int{f.blocks(p), 1}, tensor.InOut
	if parallel || f.slices == 1 {
		slices, blocks[1], target = f.slices, f.slices, tensor.Out
	}
	width := f.paddedChannels(p)
	size, _ := f.stageLines()
	partial := p.workBuffer(tensor.Float32, slices*f.shape.K*f.pixels.taps*width)
	arguments := []tensor.Argument{target(partial), tensor.In(dout), tensor.In(x)}
	for _, n := range []int{
		f.shape.K, f.image.planes, f.image.rows, f.image.columns, f.pixels.P, f.pixels.Q, f.pixels.strideH, f.pixels.strideW,
		ceilDiv(f.shape.C, channelsPerLine(p.Precision)), f.pixels.taps, f.pixels.tapColumns, f.pixels.tapRowStride, f.pixels.tapColumnStride,
		gradient.rows, gradient.columns, gradient.top*gradient.columns + gradient.left, ceilDiv(f.shape.K, channelsPerLine(p.Precision)), size, f.slicePixels,
	} {
		arguments = append(arguments, tensor.Int(n))
	}
	return append(append(calls, more...), Call{
		Symbol: "conv2d_nhwc_filter_" + ending, Blocks: blocks, Threads: warp * f.warps, Shared: f.shared(p),
		Arguments: arguments, Cycles: cycles - f.sumCost(p, p.Chains, parallel),
	}, f.sumSlices(p, partial, slices))
}

// sumSlices returns the call that adds the slices.
func (f *packedFilterGrad) sumSlices(p *planner, partial *tensor.Buffer, slices int) Call {
	// A block has 32 x 32 sums. If there are few blocks, each sum gets a thread of its own.
	blocks, threads := f.shape.K*ceilDiv(f.shape.C, warp)*ceilDiv(f.pixels.taps, warp), GridStrideThreads
	if blocks*p.Chains <= 2*p.Multiprocessors {
		threads = warp * warp
	}
	return Call{
		Symbol: "slices_nhwc_f32", Blocks: [2]int{blocks, 1}, Threads: threads,
		Arguments: []tensor.Argument{
			f.out, tensor.In(partial), tensor.Int(f.shape.K), tensor.Int(f.pixels.taps), tensor.Int(f.shape.C), tensor.Int(f.paddedChannels(p)), tensor.Int(slices),
		},
	}
}
