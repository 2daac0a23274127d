package plan

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// Convolutions in bf16 on GPUs of capability 9.0 may have the tensor cores read the packed copies
// from shared memory by themselves (kernels/nhwcgroup.cuh).

// wgmmaTile is an instance of their kernel: 64 filters by some strips, each of eight pixels of
// each of height rows.
type wgmmaTile struct {
	height, strips int
	speed          speed // as a tile's
}

// The tiles. The data sheet's dense peak is 2048 multiplications in a multiprocessor's cycle, a
// speed of 16; full is assumed to be 0.8 of that, and 0.6 with products of 64 columns, whose
// operands fill shared memory's bandwidth; alone, where nothing hides what a block waits for, 0.7
// of the peak with two groups of warps, 0.55 with one, and 0.4 with products of 64 columns. With 64
// chains an H100 reaches 0.67 to 0.69, columns beyond the image included (docs/cuda.md).
var tilesWGMMA = []wgmmaTile{
	{16, 2, speed{13, 11}}, {14, 2, speed{13, 11}}, {14, 1, speed{12.5, 9}}, {8, 2, speed{9.6, 8}}, {8, 1, speed{9.6, 6.4}},
}

// Of the kernels' shared memory.
const (
	wgmmaRows   = 64
	wgmmaStages = 6
	// wgmmaBarrierBytes are the bytes of the barriers: two for each stage, four that the pixels
	// have come, one that their memory is free.
	wgmmaBarrierBytes = 8 * (2*wgmmaStages + 4 + 1)
	stripWidth        = 8
)

// manyChains are as many as fill a GPU. Which kernel computes a convolution may not depend on the
// number of chains, as NVIDIA does not say in which order their sums are added up; so it is the
// one that is better for one and for many, by the product of the costs.
const manyChains = 64

// wgmmaProduct is a convolution by these kernels.
type wgmmaProduct struct{ packedProduct }

// asWGMMA is nil if there are no kernels for a product.
func (g packedProduct) asWGMMA(p *planner) *wgmmaProduct {
	if !p.WGMMA || p.Precision != BF16 || g.strideH != 1 || g.strideW != 1 {
		return nil
	}
	g.image.chunks, g.filter.chunks = imageChunks, filterChunks
	return &wgmmaProduct{g}
}

// octets and each are a row's and an image's strips.
func (g *wgmmaProduct) stripsPerRow() int { return ceilDiv(g.Q, stripWidth) }
func (g *wgmmaProduct) stripsPerImage(t wgmmaTile) int {
	return ceilDiv(g.P, t.height) * g.stripsPerRow()
}
func (g *wgmmaProduct) strips(t wgmmaTile) int { return g.packSpec.planes * g.stripsPerImage(t) }

// line is where a strip begins.
func (g *wgmmaProduct) stripStart(t wgmmaTile, strip int) int {
	image, rest := strip/g.stripsPerImage(t), strip%g.stripsPerImage(t)
	return (image*g.packSpec.rows+rest/g.stripsPerRow()*t.height)*g.packSpec.columns + rest%g.stripsPerRow()*stripWidth
}

// lines are the most, and on average, that a tile needs. After as many images as a tile has strips
// all is the same again.
func (g *wgmmaProduct) linesPerTile(t wgmmaTile) (most int, mean float64) {
	end := min(g.strips(t), t.strips*g.stripsPerImage(t))
	for s := 0; s < end; s += t.strips {
		lines := g.stripStart(t, min(s+t.strips, g.strips(t))-1) - g.stripStart(t, s) + (t.height-1)*g.packSpec.columns + stripWidth + g.reach
		most = max(most, lines)
		mean += float64(lines)
	}
	return most, mean / float64(ceilDiv(end, t.strips))
}

// threads are four warps for each strip, and one that starts the copies.
func (t wgmmaTile) threads() int { return t.strips*4*warp + warp }

// maxResident are the blocks that share a multiprocessor's registers, as the kernels are bounded.
func (t wgmmaTile) maxResident() int {
	if t.strips == 1 {
		return 3
	}
	return 2
}

func (t wgmmaTile) columns() int { return t.strips * t.height * stripWidth }

func (t wgmmaTile) blocks(g *wgmmaProduct) int {
	return ceilDiv(g.product.rows, wgmmaRows) * ceilDiv(g.strips(t), t.strips)
}

// shared is a block's bytes: the filters' stages and the pixels' lines, or the sums that replace
// these, and the barriers.
func (t wgmmaTile) shared(g *wgmmaProduct) int {
	most, _ := g.linesPerTile(t)
	return max(lineBytes*(wgmmaStages*wgmmaRows+most), 4*wgmmaRows*ceilDiv(t.columns(), warp)*warp) + wgmmaBarrierBytes
}

// cost estimates the cycles, as packedTile.cost does.
func (t wgmmaTile) cost(p *planner, g *wgmmaProduct, chains int) float64 {
	shared := t.shared(g)
	if shared > p.Shared {
		return math.Inf(1)
	}
	blocks := ceilDiv(g.image.channels, channelsPerLine(p.Precision))
	work := float64(wgmmaRows*t.columns()*g.taps*blocks*channelsPerLine(p.Precision)) / macsPerCycle
	_, lines := g.linesPerTile(t)
	bytes := float64(blocks*lineBytes) * (float64(wgmmaRows*g.taps) + lines)
	resident := residentBlocks(p, shared, t.maxResident())
	return t.speed.limitedTo(resident).cycles(p, t.blocks(g)*chains, resident, work, bytes)
}

// cheapest is the cheapest tile, and its cycles.
func (g *wgmmaProduct) cheapest(p *planner, chains int) (best wgmmaTile, least float64) {
	least = math.Inf(1)
	for _, t := range tilesWGMMA {
		if cost := t.cost(p, g, chains); cost < least {
			best, least = t, cost
		}
	}
	return best, least
}

// beats says whether these kernels are better than those of packedTile.
func (g *wgmmaProduct) beats(p *planner) bool {
	ours, others := 1.0, 1.0
	for _, chains := range []int{1, manyChains} {
		_, one := g.cheapest(p, chains)
		_, other := g.packedProduct.cheapest(p, chains)
		ours, others = ours*one, others*other
	}
	return ours < others
}

// WGMMAKernel returns the name of one of the kernels that use wgmma. Drivers too old for their PTX
// have none of them.
func WGMMAKernel() string { return wgmmaSymbol(wgmmaTile{height: 8, strips: 1}) }

func wgmmaSymbol(t wgmmaTile) string {
	return fmt.Sprintf("conv2d_nhwc_group_%dx%d_bf16", t.height, t.strips*stripWidth)
}

func (g *wgmmaProduct) lower(p *planner) []Call {
	t, cycles := g.cheapest(p, p.Chains)
	x, calls := p.pack(g.operands[0], g.image)
	w, more := p.pack(g.operands[1], g.filter)
	most, _ := g.linesPerTile(t)
	arguments := g.bufferArguments(x, w)
	for _, n := range []int{
		g.product.rows, g.packSpec.planes, g.packSpec.rows, g.packSpec.columns, g.P, g.Q, ceilDiv(g.image.channels, channelsPerLine(p.Precision)),
		g.taps, g.tapColumns, g.tapBase, g.tapRowStride, g.tapColumnStride, g.reach, most, g.epilogue,
	} {
		arguments = append(arguments, tensor.Int(n))
	}
	return append(append(calls, more...), Call{
		Symbol: wgmmaSymbol(t), Blocks: [2]int{t.blocks(g), 1}, Threads: t.threads(), Shared: t.shared(g), Arguments: arguments, Cycles: cycles,
	})
}
