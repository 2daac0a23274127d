package plan

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// On compute capability 9.0, convolutions in bf16 may use wgmma (kernels/nhwcgroup.cuh). In this
// instruction four warps, a warpgroup, multiply 64 x 16 by 16 x N numbers, and the tensor cores
// read both operands from shared memory through matrix descriptors, without a register or an
// ldmatrix. A packed copy in chunks (lineLayout) can be such an operand without being rearranged.

// wgmmaTile is an instance of the kernel: 64 filters by some strips. A strip is eight pixels wide
// and height rows high, which is N = 8*height columns of a wgmma: its row of eight pixels is eight
// neighbouring lines, a core matrix.
type wgmmaTile struct {
	height, strips int
	speed          speed
}

// The tiles. The data sheet's peak is 2048 multiplications per multiprocessor and cycle, a speed of
// 16. full is assumed to be 0.8 of that, and 0.6 with 64 columns, where the operands take all of
// shared memory's bandwidth. single is assumed to be 0.7 of the peak with two warpgroups, 0.55 with
// one, and 0.4 with 64 columns. With 64 chains an H100 reaches 0.67 to 0.69, columns beyond the
// image included (docs/cuda.md).
var tilesWGMMA = []wgmmaTile{
	{16, 2, speed{13, 11}}, {14, 2, speed{13, 11}}, {14, 1, speed{12.5, 9}}, {8, 2, speed{9.6, 8}}, {8, 1, speed{9.6, 6.4}},
}

// Sizes in the kernels.
const (
	wgmmaStages = 6
	// wgmmaBarrierBytes is the size of the mbarriers: two for each stage (it is full, it is empty),
	// four for the arrival of the pixels, and one for their memory being free again.
	wgmmaBarrierBytes = 8 * (2*wgmmaStages + 4 + 1)
	stripWidth        = 8
)

// wgmmaProduct is a convolution by these kernels.
type wgmmaProduct struct{ packedProduct }

// asWGMMA returns the product by wgmma, or nil if there is no kernel for it.
func (g packedProduct) asWGMMA(p *planner) *wgmmaProduct {
	if !p.WGMMA || p.Precision != BF16 || g.strideH != 1 || g.strideW != 1 {
		return nil
	}
	g.image.chunks, g.filter.chunks = imageChunks, filterChunks
	return &wgmmaProduct{g}
}

func (g *wgmmaProduct) stripsPerRow() int { return ceilDiv(g.Q, stripWidth) }
func (g *wgmmaProduct) stripsPerImage(t wgmmaTile) int {
	return ceilDiv(g.P, t.height) * g.stripsPerRow()
}
func (g *wgmmaProduct) strips(t wgmmaTile) int { return g.packSpec.planes * g.stripsPerImage(t) }

// stripStart returns the line at which a strip begins.
func (g *wgmmaProduct) stripStart(t wgmmaTile, strip int) int {
	image, rest := strip/g.stripsPerImage(t), strip%g.stripsPerImage(t)
	return (image*g.packSpec.rows+rest/g.stripsPerRow()*t.height)*g.packSpec.columns + rest%g.stripsPerRow()*stripWidth
}

// linesPerTile returns the maximum and the mean number of lines that a tile reads. The pattern
// repeats after t.strips images.
func (g *wgmmaProduct) linesPerTile(t wgmmaTile) (most int, mean float64) {
	end := min(g.strips(t), t.strips*g.stripsPerImage(t))
	for s := 0; s < end; s += t.strips {
		lines := g.stripStart(t, min(s+t.strips, g.strips(t))-1) - g.stripStart(t, s) + (t.height-1)*g.packSpec.columns + stripWidth + g.reach
		most = max(most, lines)
		mean += float64(lines)
	}
	return most, mean / float64(ceilDiv(end, t.strips))
}

// threads returns the threads of a block: a warpgroup for each strip, and a warp that starts the
// bulk copies (the producer).
func (t wgmmaTile) threads() int { return t.strips*4*warp + warp }

// maxResident returns how many blocks fit into a multiprocessor's registers, by the kernels' launch
// bounds.
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

// shared is a block's shared memory: the stages of filters and the lines of its pixels, or the sums
// that replace them at the end, and the mbarriers.
func (t wgmmaTile) shared(g *wgmmaProduct) int {
	most, _ := g.linesPerTile(t)
	return max(lineBytes*(wgmmaStages*wgmmaRows+most), 4*wgmmaRows*ceilDiv(t.columns(), warp)*warp) + wgmmaBarrierBytes
}

// cost estimates the cycles, like packedTile.cost.
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

// cheapest returns the cheapest tile, and its cycles.
func (g *wgmmaProduct) cheapest(p *planner, chains int) (wgmmaTile, float64) {
	return cheapestOf(tilesWGMMA, func(t wgmmaTile) float64 { return t.cost(p, g, chains) })
}

// beats reports whether these kernels are better than packedTile's, by the product of the costs for
// one chain and for manyChains.
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

// lower returns the calls: those that pack the image and the filter, unless an earlier one has, and
// the product with the cheapest tiles.
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
