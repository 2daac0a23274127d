package kernel

// convPlan is a direct convolution in any direction.
type convPlan struct {
	window
	outputs int  // output channels of convTile
	ranges  int  // of the outputs, each a tile
	bias    bool // whether convTile adds a bias
	relu    bool
	ceiling float32 // 0 for none
	shape   Conv2D
	filter  filterPlan
}

// filterPlan divides the gradient of the filter into chunks of the batch, which have separate
// partial sums in the workspace, times ranges of taps.
type filterPlan struct {
	chunks   int // ranges of the batch; the workspace holds a partial gradient of each
	together int // consecutive taps that share an address in the microkernel
	groups   int // of taps, each a register tile
	ranges   int // of groups
	columns  int // K rounded up to whole panels
	combine  int // tiles of the second phase, which adds the chunks
}

// group returns the taps [lo, hi) of groups [i, j).
func (f *filterPlan) group(i, j, taps int) (lo, hi int) {
	lo, _ = splitRange(taps/f.together, f.groups, i)
	_, hi = splitRange(taps/f.together, f.groups, j-1)
	return lo * f.together, hi * f.together
}

// epilogue returns the flags of [Gemm.epilogue], with a bias per row and the ceiling.
func (p *convPlan) epilogue(first, last bool) flags {
	kind := NoBias
	if p.bias {
		kind = BiasRow
	}
	f := Gemm{Bias: kind, ReLU: p.relu}.epilogue(first, last)
	if last && p.ceiling > 0 {
		f |= ceilingFlags(p.ceiling)
	}
	return f
}

// packedElements bounds the panels that convPacked packs together, so that they stay in a
// first-level cache of 48 KiB while they are multiplied by all output channels.
const packedElements = 2 * maxDepth * panelColumns

// packedScratch returns the scratch memory of convPacked in elements: the panels, and the sums of a
// pair of panels for all output channels.
func (p *convPlan) packedScratch() int { return packedElements + 2*panelColumns*p.outputs }

// direct prepares Forward as a product of the filter [K, C*R*S] and the matrix of image patches
// [C*R*S, B*P*Q] (implicit GEMM: the matrix is packed panel by panel and never stored as a whole).
func (c Conv2D) direct() Routine {
	p := convPlan{outputs: c.K, bias: c.Bias, relu: c.ReLU, ceiling: c.Ceiling, shape: c}
	p.window = c.imageWindow()
	vertical, horizontal := c.axes()
	p.choose(vertical, horizontal)
	p.splitColumns(horizontal)
	p.build(vertical, horizontal, c.K)
	p.divideOutputs()
	bias := 0
	if c.Bias {
		bias = c.K
	}
	planes := Planes{}
	if p.inSource && p.images == 1 {
		planes.Count = c.K
	}
	return Routine{
		Phases:  []int{p.tiles() * p.ranges},
		Rows:    c.B,
		Unit:    p.images,
		Planes:  planes,
		Scratch: p.paddedSize() + p.packedScratch(),
		kind:    kindConv2DForward, plan: &p,
		sizeA: c.sizeX(), sizeB: c.sizeW(), sizeBias: bias, sizeOut: c.sizeY(),
	}
}

// Limits of dividing the outputs.
const (
	// rangeOutputs and rangeProducts bound a range from below: each one packs the pixels again, and
	// a worker must have more to do than to wake up.
	rangeOutputs  = 128
	rangeProducts = 1 << 19
)

// divideOutputs sets ranges. The pixels of one small image make too few tiles for all threads, so
// each thread computes some of the outputs. Several images are left to the threads as they are:
// fused with its neighbours, a convolution is divided by images only.
func (p *convPlan) divideOutputs() {
	p.ranges = 1
	if p.batch == 1 {
		products := p.outputs * len(p.taps) * p.rows * p.outW
		p.ranges = max(1, min(tileCount/p.tiles(), p.outputs/rangeOutputs, products/rangeProducts))
	}
}

// convolveBack prepares BackwardInput as a convolution with the flipped filter.
func (c Conv2D) convolveBack() Routine {
	p := convPlan{outputs: c.C, ranges: 1, shape: c}
	p.window = window{
		channels: c.K, height: c.P(), width: c.Q(),
		spacingH: c.StrideH, spacingW: c.StrideW,
		padH: c.DilationH*(c.R-1) - c.PadH, padW: c.DilationW*(c.S-1) - c.PadW,
		batch: c.B, outH: c.H, outW: c.W,
	}
	vertical, horizontal := axis{c.R, c.DilationH, 1}, axis{c.S, c.DilationW, 1}
	p.choose(vertical, horizontal)
	p.build(vertical, horizontal, c.C)
	return Routine{
		Phases:    []int{min(c.C, tileCount), p.tiles()},
		Rows:      c.B,
		Unit:      p.images,
		Workspace: c.sizeW(),
		Scratch:   p.paddedSize() + p.packedScratch(),
		kind:      kindConv2DBackwardInput, plan: &p,
		sizeA: c.sizeY(), sizeB: c.sizeW(), sizeOut: c.sizeX(),
	}
}
