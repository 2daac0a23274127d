package plan

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// packedTile is an instance of the kernel of packed convolutions (kernels/nhwc.cuh).
type packedTile struct {
	rows, columns, threads int
	speed                  speed
}

// The tiles of packed convolutions, and the speed of the filter's gradient. All speeds are
// estimates for an H200 until TestCalibrate has run.
//
// The data sheet's peaks, 2048 multiplications per multiprocessor and cycle in bf16 and 1024 in
// tf32, need wgmma. mma.sync is assumed to reach 0.62 of them: 1270 and 635. The loops'
// instructions allow more (kernels.Loops), as does the bandwidth of shared memory for tiles of
// 64x128. A warp's part of 32x48 limits it to 1229 and 614, one of 32x32 to 1024 and 512. full is
// 0.85 of that, and less where few warps are resident. single, which latency limits, is half of
// full or less.
var (
	tilesPackedTF32   = []packedTile{{64, 128, 128, speed{4.2, 2.1}}, {64, 96, 128, speed{4.05, 2}}, {64, 64, 128, speed{3.4, 1.6}}, {32, 64, 64, speed{2.4, 0.8}}}
	tilesPackedBF16   = []packedTile{{64, 128, 128, speed{8.4, 4.2}}, {64, 96, 128, speed{8.1, 4}}, {64, 64, 128, speed{6.8, 3.2}}, {32, 64, 64, speed{4.8, 1.6}}}
	speedPackedFilter = map[Precision]speed{TF32: {4.2, 2.1}, BF16: {8.4, 4.2}}
)

// Sizes in the kernels (kernels/nhwc.cuh, kernels/nhwcfilter.cuh).
const (
	paddedLineBytes   = lineBytes + 16 // from a line to the next one in shared memory: the 16 bytes avoid bank conflicts of ldmatrix
	packedStages      = 3
	filterRows        = 64
	stagePixels       = 64
	filterChannels    = 256 // the most channels of a block's taps, together
	reservedShared    = 1 << 10
	maxPackedResident = 3 // blocks that fit into a multiprocessor's registers
)

// residentBlocks returns how many blocks of shared bytes each fit into a multiprocessor's shared
// memory, counting what it reserves for each block. The blocks' registers limit the result to most.
func residentBlocks(p *planner, shared, most int) int {
	return min(most, (p.Shared+reservedShared)/(shared+reservedShared))
}

// pixelMap maps the columns of a product to lines of a packed image: P x Q pixels of each plane.
// Column n at tap (r, s) reads line lineOf(n) + tapBase + r*tapRowStride + s*tapColumnStride.
type pixelMap struct {
	packSpec
	P, Q, strideH, strideW                 int
	windows                                bool // columns are ordered by pooling windows, four pixels each
	taps, tapColumns                       int  // R*S and S
	tapBase, tapRowStride, tapColumnStride int
	reach                                  int // from the first line that a pixel's taps read to the last one
}

func (x pixelMap) count() int { return x.planes * x.P * x.Q }

// lineOf returns the line of pixel n, before a tap is added.
func (x pixelMap) lineOf(n int) int {
	image, pixel := n/(x.P*x.Q), n%(x.P*x.Q)
	p, q := pixel/x.Q, pixel%x.Q
	if x.windows {
		window := pixel / 4
		p, q = 2*(window/(x.Q/2))+pixel/2%2, 2*(window%(x.Q/2))+pixel%2
	}
	return (image*x.rows+p*x.strideH)*x.columns + q*x.strideW
}

// linesPerTile returns the maximum and the mean number of lines that tiles of consecutive pixels
// read. The pattern of tiles repeats when it has covered pixels images.
func (x pixelMap) linesPerTile(pixels, reach int) (most int, mean float64) {
	end := min(x.count(), pixels*x.P*x.Q)
	for n := 0; n < end; n += pixels {
		lines := x.lineOf(min(n+pixels, x.count())-1) - x.lineOf(n) + 1 + reach
		most = max(most, lines)
		mean += float64(lines)
	}
	return most, mean / float64(ceilDiv(end, pixels))
}

// packedProduct is a forward convolution, or the gradient of its image, on packed copies.
type packedProduct struct {
	*product
	image, filter packSpec
	pixelMap
}

// asPacked returns the product on packed copies. For the image's gradient, a convolution with
// strides becomes one without strides: the packed copy has zeros between the output's gradients.
func (g *product) asPacked() packedProduct {
	s := convShapeOf(g)
	if g.forward {
		x := s.packImage()
		return packedProduct{g, x, s.packFilter(), pixelMap{
			packSpec: x, P: s.P, Q: s.Q, strideH: s.strideH, strideW: s.strideW, windows: g.epilogue&epiloguePool != 0, taps: s.taps(), tapColumns: s.S,
			tapRowStride: s.dilationH * x.columns, tapColumnStride: s.dilationW, reach: (s.R-1)*s.dilationH*x.columns + (s.S-1)*s.dilationW,
		}}
	}
	x := s.packGradient()
	reach := (s.R-1)*s.dilationH*x.columns + (s.S-1)*s.dilationW
	return packedProduct{g, x, s.packFilterTransposed(), pixelMap{
		packSpec: x, P: s.H, Q: s.W, strideH: 1, strideW: 1, taps: s.taps(), tapColumns: s.S,
		tapBase: reach, tapRowStride: -s.dilationH * x.columns, tapColumnStride: -s.dilationW, reach: reach,
	}}
}

func (t packedTile) blocks(g packedProduct) int {
	return ceilDiv(g.rows, t.rows) * ceilDiv(g.count(), t.columns)
}

// shared is a block's shared memory: the stages of filters and the lines of its pixels. At the end,
// the sums overwrite both.
func (t packedTile) shared(g packedProduct) int {
	most, _ := g.pixelMap.linesPerTile(t.columns, g.reach)
	return max(paddedLineBytes*(packedStages*t.rows+most), 4*t.rows*t.columns)
}

// cost estimates the cycles, like product.cost. A block reads the lines of its pixels once for each
// block of channels, and all filters of its rows.
func (t packedTile) cost(p *planner, g packedProduct, chains int) float64 {
	shared := t.shared(g)
	if shared > p.Shared {
		return math.Inf(1)
	}
	blocks := ceilDiv(g.image.channels, channelsPerLine(p.Precision))
	depth := g.taps * blocks * channelsPerLine(p.Precision)
	work := float64(t.rows*t.columns*depth) / macsPerCycle
	_, lines := g.pixelMap.linesPerTile(t.columns, g.reach)
	bytes := float64(blocks*lineBytes) * (float64(t.rows*g.taps) + lines)
	resident := residentBlocks(p, shared, maxPackedResident)
	return t.speed.limitedTo(resident).cycles(p, t.blocks(g)*chains, resident, work, bytes)
}

// packedTiles returns the tiles for a precision.
func packedTiles(p *planner) []packedTile {
	switch p.Precision {
	case TF32:
		return tilesPackedTF32
	case BF16:
		return tilesPackedBF16
	}
	return nil
}

// cheapest returns the cheapest tile, and its cycles.
func (g packedProduct) cheapest(p *planner, chains int) (packedTile, float64) {
	return cheapestOf(packedTiles(p), func(t packedTile) float64 { return t.cost(p, g, chains) })
}

// cheapestOf returns the tile with the lowest cost, and its cost, which is infinite without tiles.
func cheapestOf[T any](tiles []T, costOf func(T) float64) (best T, least float64) {
	least = math.Inf(1)
	for _, t := range tiles {
		if cost := costOf(t); cost < least {
			best, least = t, cost
		}
	}
	return best, least
}

// canPack reports whether there are kernels for the product on packed copies.
func (g *product) canPack(p *planner) bool {
	return !p.NoPacking && g.conv && g.out.Buffer.DType == tensor.Float32 && p.Capability >= SM80 && packedTiles(p) != nil
}

// costUnpacked estimates the cycles of the product for one chain, without packing.
func (g *product) costUnpacked(p *planner) float64 {
	one := *p
	one.Chains = 1
	tiles, _ := tilesOf(p, g.out.Buffer.DType)
	g = g.tiled(p)
	cost := g.cost(&one, g.split(&one, tiles), 1)
	if !g.forward && !g.filterGrad && g.looksUp() {
		if s := convShapeOf(g); s.strideH > 1 || s.strideW > 1 {
			cost *= cyclesPerStridedTap
		}
	}
	return cost
}

// cyclesPerStridedTap is the factor by which an image's gradient takes longer if it has to divide
// by strides to look up each element: an H200 took 4 to 6 times the estimate for one without
// strides.
const cyclesPerStridedTap = 4

// packCost estimates the cycles of making the packed copies, for one chain.
func (g packedProduct) packCost(p *planner) float64 { return g.image.cost(p) + g.filter.cost(p) }

// bufferArguments returns the kernel's arguments before the integers.
func (g packedProduct) bufferArguments(x, w *tensor.Buffer) []tensor.Argument {
	out, pooled, which := g.out, tensor.In(x), tensor.In(x)
	if g.pool != nil {
		out, pooled, which = tensor.In(x), tensor.Out(g.pool.pooled), g.argmaxOr(which)
	}
	return []tensor.Argument{out, tensor.In(x), tensor.In(w), g.biasOr(tensor.In(x)), pooled, which}
}

// lower returns the calls: those that pack the image and the filter, unless an earlier one has, and
// the product with the cheapest tiles.
func (g packedProduct) lower(p *planner) []Call {
	t, cycles := g.cheapest(p, p.Chains)
	x, calls := p.pack(g.operands[0], g.image)
	w, more := p.pack(g.operands[1], g.filter)
	arguments := g.bufferArguments(x, w)
	for _, n := range []int{
		g.product.rows, g.planes, g.packSpec.rows, g.packSpec.columns, g.P, g.Q, g.strideH, g.strideW, ceilDiv(g.image.channels, channelsPerLine(p.Precision)),
		g.taps, g.tapColumns, g.tapBase, g.tapRowStride, g.tapColumnStride, g.reach, g.epilogue,
	} {
		arguments = append(arguments, tensor.Int(n))
	}
	return append(append(calls, more...), Call{
		Symbol: fmt.Sprintf("conv2d_nhwc_%dx%d_%s", t.rows, t.columns, p.Precision),
		Blocks: [2]int{t.blocks(g), 1}, Threads: t.threads, Shared: t.shared(g), Arguments: arguments, Cycles: cycles,
	})
}
