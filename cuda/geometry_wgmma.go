package cuda

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// Convolutions in bf16 on GPUs of capability 9.0 may have the tensor cores read the packed copies
// from shared memory by themselves (kernels/nhwcgroup.cuh).

// WGMMAVariable names the environment variable that, if it is "off", leaves these kernels out.
const WGMMAVariable = "POLLEN_CUDA_WGMMA"

// groupable is the capability whose wgmma they use. No other one has it, not even a later one.
const groupable = 90

// stripTile is an instance of their kernel: 64 filters by some strips, each of eight pixels of
// each of height rows.
type stripTile struct {
	height, strips int
	speed          speed // as a tile's
}

// The tiles. The data sheet's dense peak is 2048 multiplications in a multiprocessor's cycle, a
// speed of 16; full is assumed to be 0.8 of that, and 0.6 with products of 64 columns, whose
// operands fill shared memory's bandwidth; alone, where nothing hides what a block waits for, 0.7
// of the peak with two groups of warps, 0.55 with one, and 0.4 with products of 64 columns. With 64
// chains an H100 reaches 0.67 to 0.69, columns beyond the image included (docs/cuda.md).
var tilesGrouped = []stripTile{
	{16, 2, speed{13, 11}}, {14, 2, speed{13, 11}}, {14, 1, speed{12.5, 9}}, {8, 2, speed{9.6, 8}}, {8, 1, speed{9.6, 6.4}},
}

// Of the kernels' shared memory.
const (
	groupRows   = 64
	groupStages = 6
	// groupBarriers are the bytes of the barriers: two for each stage, four that the pixels have
	// come, one that their memory is free.
	groupBarriers = 8 * (2*groupStages + 4 + 1)
	stripWidth    = 8
)

// manyChains are as many as fill a GPU. Which kernel computes a convolution may not depend on the
// number of chains, as NVIDIA does not say in which order their sums are added up; so it is the
// one that is better for one and for many, by the product of the costs.
const manyChains = 64

// groupProduct is a convolution by these kernels.
type groupProduct struct{ packedProduct }

// onGroups is nil if there are no kernels for a product.
func (g packedProduct) onGroups(p *placement) *groupProduct {
	if !p.groups || p.precision != BF16 || g.strideH != 1 || g.strideW != 1 {
		return nil
	}
	g.image.chunks, g.filter.chunks = imageChunks, filterChunks
	return &groupProduct{g}
}

// octets and each are a row's and an image's strips.
func (g *groupProduct) octets() int              { return ceil(g.Q, stripWidth) }
func (g *groupProduct) each(t stripTile) int     { return ceil(g.P, t.height) * g.octets() }
func (g *groupProduct) stripsOf(t stripTile) int { return g.packing.planes * g.each(t) }

// line is where a strip begins.
func (g *groupProduct) line(t stripTile, strip int) int {
	image, rest := strip/g.each(t), strip%g.each(t)
	return (image*g.packing.rows+rest/g.octets()*t.height)*g.packing.columns + rest%g.octets()*stripWidth
}

// lines are the most, and on average, that a tile needs. After as many images as a tile has strips
// all is the same again.
func (g *groupProduct) lines(t stripTile) (most int, mean float64) {
	end := min(g.stripsOf(t), t.strips*g.each(t))
	for s := 0; s < end; s += t.strips {
		lines := g.line(t, min(s+t.strips, g.stripsOf(t))-1) - g.line(t, s) + (t.height-1)*g.packing.columns + stripWidth + g.reach
		most = max(most, lines)
		mean += float64(lines)
	}
	return most, mean / float64(ceil(end, t.strips))
}

// threads are four warps for each strip, and one that starts the copies.
func (t stripTile) threads() int { return t.strips*4*warp + warp }

// maxResident are the blocks that share a multiprocessor's registers, as the kernels are bounded.
func (t stripTile) maxResident() int {
	if t.strips == 1 {
		return 3
	}
	return 2
}

func (t stripTile) columns() int { return t.strips * t.height * stripWidth }

func (t stripTile) blocks(g *groupProduct) int {
	return ceil(g.product.rows, groupRows) * ceil(g.stripsOf(t), t.strips)
}

// shared is a block's bytes: the filters' stages and the pixels' lines, or the sums that replace
// these, and the barriers.
func (t stripTile) shared(g *groupProduct) int {
	most, _ := g.lines(t)
	return max(lineBytes*(groupStages*groupRows+most), 4*groupRows*ceil(t.columns(), warp)*warp) + groupBarriers
}

// cost estimates the cycles, as packedTile.cost does.
func (t stripTile) cost(p *placement, g *groupProduct, chains int) float64 {
	shared := t.shared(g)
	if shared > p.shared {
		return math.Inf(1)
	}
	blocks := ceil(g.image.channels, numbersOf(p.precision))
	work := float64(groupRows*t.columns()*g.taps*blocks*numbersOf(p.precision)) / costPerCycle
	_, lines := g.lines(t)
	bytes := float64(blocks*lineBytes) * (float64(groupRows*g.taps) + lines)
	resident := residentOf(p, shared, t.maxResident())
	return t.speed.with(resident).cycles(p, t.blocks(g)*chains, resident, work, bytes)
}

// cheapest is the cheapest tile, and its cycles.
func (g *groupProduct) cheapest(p *placement, chains int) (best stripTile, least float64) {
	least = math.Inf(1)
	for _, t := range tilesGrouped {
		if cost := t.cost(p, g, chains); cost < least {
			best, least = t, cost
		}
	}
	return best, least
}

// beats says whether these kernels are better than those of packedTile.
func (g *groupProduct) beats(p *placement) bool {
	ours, others := 1.0, 1.0
	for _, chains := range []int{1, manyChains} {
		_, one := g.cheapest(p, chains)
		_, other := g.packedProduct.cheapest(p, chains)
		ours, others = ours*one, others*other
	}
	return ours < others
}

func groupSymbol(t stripTile) string {
	return fmt.Sprintf("conv2d_nhwc_group_%dx%d_bf16", t.height, t.strips*stripWidth)
}

func (g *groupProduct) calls(p *placement) []call {
	t, cycles := g.cheapest(p, p.chains)
	x, calls := p.pack(g.operands[0], g.image)
	w, more := p.pack(g.operands[1], g.filter)
	most, _ := g.lines(t)
	arguments := g.buffers(x, w)
	for _, n := range []int{
		g.product.rows, g.packing.planes, g.packing.rows, g.packing.columns, g.P, g.Q, ceil(g.image.channels, numbersOf(p.precision)),
		g.taps, g.across, g.first, g.down, g.right, g.reach, most, g.epilogue,
	} {
		arguments = append(arguments, tensor.Int(n))
	}
	return append(append(calls, more...), call{
		symbol: groupSymbol(t), blocks: [2]int{t.blocks(g), 1}, threads: t.threads(), shared: t.shared(g), arguments: arguments, cycles: cycles,
	})
}
