package cuda

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// forwardOfWindows is a convolution of images of few channels on the tensor cores
// (kernels/windowforward.cuh): a block for 32 filters of each images.
type forwardOfWindows struct {
	*product
	shape          sizes
	symbol         string
	row, channel   int // words apart in shared memory
	each, together int
}

// tapWords are the words of a filter's line and channel, and how many a kernel has at most.
func (s sizes) tapWords(p Precision) (line, most int) {
	if p == BF16 {
		return ceil(s.S, 2), 16
	}
	return s.S, 32
}

// forwardOnWindows is the convolution, cut for so many chains, and its cycles; nil if there is no
// kernel.
func (g *product) forwardOnWindows(p *placement, chains int) (f *forwardOfWindows, least float64) {
	if p.windowless || !g.forward || !g.onCores(p) {
		return nil, math.Inf(1)
	}
	s := sizesOf(g)
	words, most := s.tapWords(p.precision)
	if s.C*s.R*words > most {
		return nil, math.Inf(1)
	}
	f = &forwardOfWindows{product: g, shape: s, symbol: "conv2d_windows_pool_" + string(p.precision)}
	f.row, f.channel = s.apart(words * numbersOf(p.precision) / lineWords)
	least = math.Inf(1)
	best := *f
	for f.each = 1; f.each <= s.B; f.each++ {
		for f.together = s.together(f.each, f.channel); f.together > 0; f.together-- {
			if cost := f.cost(p, chains); cost < least && f.shared() <= p.shared {
				best, least = *f, cost
			}
		}
	}
	if g.pool == nil {
		best.symbol = "conv2d_windows_whole_" + string(p.precision)
	}
	return &best, least
}

// shared is a block's bytes: each window's place in an image and in a packed copy, the filters, and
// of the images that are there together the notes, a byte for each window, and the words.
func (f *forwardOfWindows) shared() int {
	s := f.shape
	places, filters := 2*ceil(s.windows(), coresGroup)*coresGroup, windowFilters*s.C*s.taps()
	return 4*(places+filters) + f.together*(windowFilters*s.windows()+4*s.C*f.channel)
}

// cost estimates the cycles of the kernel that pools.
func (f *forwardOfWindows) cost(p *placement, chains int) float64 {
	resident := 2
	if p.precision == TF32 {
		resident = 1 // by its registers
	}
	blocks := ceil(f.shape.K, windowFilters) * ceil(f.shape.B, f.each) * chains
	work := f.shape.coresWork(f.symbol, f.each, f.together)
	bytes := f.each * (4*f.shape.C*f.shape.H*f.shape.W + f.shape.windows()*windowFilters*(tensor.Float32.Size()+tensor.Uint8.Size()))
	return coresSpeed.with(resident).cycles(p, blocks, resident, work, float64(bytes))
}

// forwardCalls are the calls of a convolution of few channels, or nil if it is better otherwise.
// That is decided as for one chain, and with the kernel that pools, whatever is wanted: the order
// of sums is another one.
func (g *product) forwardCalls(p *placement) []call {
	if _, least := g.forwardOnWindows(p, 1); math.IsInf(least, 1) || least >= g.withoutWindows(p) {
		return nil
	}
	f, cycles := g.forwardOnWindows(p, p.chains)
	s, x := f.shape, g.operands[0]
	blocks := [2]int{ceil(s.K, windowFilters), ceil(s.B, f.each)}
	out, pooled, which, copied, copies := g.out, x, x, x, 0
	var k packing
	if g.pool != nil {
		out, pooled, which = x, tensor.Out(g.pool.pooled), g.whichOr(x)
		if to := f.copy(p, &k); to != nil {
			copied, copies = tensor.Out(to), 1+int(k.chunks)
			blocks[0] = ceil(s.K, numbersOf(p.precision)) * (numbersOf(p.precision) / windowFilters)
		}
	}
	arguments := append([]tensor.Argument{out, x, g.operands[1], g.biasOr(x), pooled, which, copied}, g.sizes[:15]...)
	for _, n := range []int{copies, k.rows, k.columns, k.top, k.left, g.epilogue, f.each, f.together, f.row, f.channel} {
		arguments = append(arguments, tensor.Int(n))
	}
	c := call{symbol: f.symbol, blocks: blocks, threads: warp * coresWarps, shared: f.shared(), arguments: arguments, cycles: cycles}
	if copies != 0 {
		less := c
		less.symbol, less.arguments = "conv2d_windows_pack_"+string(p.precision), slices.Clone(arguments)
		less.arguments[4] = x // instead of the maxima
		c.spare = &spare{result: g.pool.pooled, without: less}
	}
	return []call{c}
}

// withoutWindows is the least that a forward convolution costs one chain otherwise.
func (g *product) withoutWindows(p *placement) float64 {
	cost := g.plain(p)
	if on, is := g.onPacked(); is && g.mayPack(p) {
		_, least := on.cheapest(p, 1)
		cost = min(cost, least+on.copying(p))
	}
	return cost
}

// copy is a packed copy of the maxima that a later launch of the step will read, if the kernel can
// make it.
func (f *forwardOfWindows) copy(p *placement, k *packing) *tensor.Buffer {
	s := f.shape
	for _, *k = range p.wanted[f.pool.pooled] {
		fits := k.top >= 0 && k.left >= 0 && k.top+s.P/2 <= k.rows && k.left+s.Q/2 <= k.columns
		own := packing{
			planes: s.B, channels: s.K, planeFrom: s.K * s.windows(), channelFrom: s.windows(), height: s.P / 2, width: s.Q / 2,
			top: k.top, left: k.left, rows: k.rows, columns: k.columns, blocksFirst: true, chunks: min(k.chunks, imageChunks),
		}
		if fits && *k == own {
			to := p.work(tensor.Int32, ceil(k.channels, numbersOf(p.precision))*k.places()*lineWords)
			p.copies[packed{f.pool.pooled, *k}] = to
			return to
		}
	}
	*k = packing{}
	return nil
}
