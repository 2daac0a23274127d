package kernel

// winogradGradient computes the gradient of a filter. The transformed patches of x and dout are
// multiplied and summed over the batch at each point, and the sums are transformed back. Chunks of
// the batch have separate sums in the workspace.
type winogradGradient struct {
	*cookToom
	shape    Conv2D
	x, y     imageTransform
	groups   patchGroups
	chunks   int   // ranges of images, or of groups if a group is less than an image
	images   []int // the first image of each chunk, and the end; nil if chunks are not whole images
	together int   // panels of output channels per call of the microkernel
	sets     int   // sets of together panels
	ranges   int   // ranges of sets; a tile is one range of one chunk
	parts    int   // ranges of input channels when the sums are transformed back
	pointX   int   // elements from one point to the next in the transformed x
	pointY   int   // the same in a panel of the transformed dout
	pointSum int   // the same in a set of panels of the sums
}

const (
	// filterGroupElements bounds a group's transformed patches: 768 Ki float32 are 3 MiB.
	filterGroupElements = 3 << 18
	// sumsElements bounds the sums of all chunks: 10 Mi float32 are 40 MiB.
	sumsElements = 10 << 20
	// chunkPatches is the minimum number of patches of a chunk for which separate sums pay.
	chunkPatches = 64
	// filterTiles is the minimum number of tiles, even if x is then transformed more than once.
	filterTiles = 4
)

// filterWinograd prepares BackwardFilter by transformed patches.
func (c Conv2D) filterWinograd(a *cookToom) Routine {
	p := winogradGradient{cookToom: a, shape: c}
	points, strideX := p.points*p.points, ceilDiv(c.C, lanes)*lanes
	// The groups, and with them the order of the sums, do not depend on lanes.
	patchX := ceilDiv(c.C, minLanes) * minLanes
	panels := ceilDiv(c.K, panelColumns)
	p.together = panelsTogether(panels)
	p.sets, p.parts = ceilDiv(panels, p.together), ceilDiv(c.C, panelColumns)
	p.chunks = min(tileCount, c.filterChunks(a))
	p.groups = c.groups(p.patch, 0, min(maxDepth, filterGroupElements/(points*(patchX+panels*panelColumns))), p.chunks)
	whole := p.groups.rows == p.groups.bands
	if p.chunks = min(p.chunks, p.groups.count()); whole {
		each := ceilDiv(c.B, p.chunks)
		p.groups.images = ceilDiv(each, ceilDiv(each, p.groups.images))
		for i := range p.chunks + 1 {
			p.images = append(p.images, i*c.B/p.chunks)
		}
	}
	most := p.groups.most()
	p.pointX, p.pointY, p.pointSum = padStride(most*strideX), padStride(most*panelColumns), padStride(c.C*p.columns())
	p.x = imageTransform{c.blockedX(p.patch), &p.input, p.patch, p.groups.wide, patchLayout{p.points * p.pointX, p.pointX, strideX}, panelColumns, 0}
	p.y = imageTransform{c.blockedY(p.patch), &p.spread, p.patch, p.groups.wide, patchLayout{p.points * p.pointY, p.pointY, panelColumns}, points * p.pointY, 0}
	p.ranges = min(p.sets, ceilDiv(filterTiles, p.chunks))
	blocks := max(p.x.blocksSize(p.groups.highest()), p.y.blocksSize(p.groups.highest()))
	transformed := points*p.pointX + ceilDiv(p.sets, p.ranges)*p.together*p.y.panel + panelColumns/lanes*blocks
	sums := points*padStride(panelColumns*p.columns()) + panelColumns*c.R*c.S*lanes
	return Routine{
		Phases:    []int{p.chunks * p.ranges, p.sets * p.parts},
		Workspace: p.chunks * points * p.sets * p.pointSum,
		Scratch:   transformTemporary + max(transformed, sums),
		Rows:      c.B,
		Unit:      p.groups.images,
		Parts:     p.images,
		kind:      kindConv2DWinogradFilter, plan: &p,
		sizeA: c.sizeY(), sizeB: c.sizeX(), sizeOut: c.sizeW(),
	}.withoutParts()
}

// columns returns the number of columns of a row of the sums.
func (p *winogradGradient) columns() int { return p.together * panelColumns }

// filterChunks returns the number of chunks for which separate sums are worth their memory.
func (c Conv2D) filterChunks(a *cookToom) int {
	points, patches := a.points*a.points, c.B*ceilDiv(c.P(), a.patch)*ceilDiv(c.Q(), a.patch)
	return max(1, min(patches/chunkPatches, sumsElements/(points*ceilDiv(c.K, panelColumns)*padStride(c.C*panelColumns))))
}

// winogradTileSums sums one chunk of the batch for one range of sets.
func winogradTileSums[T Float](p *winogradGradient, tile int, o Operands[T]) {
	size, chunk, batch := p.points*p.points*p.sets*p.pointSum, tile%p.chunks, p.groups.batch
	lo, hi := splitRange(p.groups.count(), p.chunks, chunk)
	if p.images != nil {
		first, end := p.images[chunk], p.images[chunk+1]
		o.A, o.B = o.A[first*len(o.A)/batch:end*len(o.A)/batch], o.B[first*len(o.B)/batch:end*len(o.B)/batch]
		batch = end - first
		lo, hi = 0, ceilDiv(batch, p.groups.images)
	}
	winogradSums(p, lo, hi, batch, tile/p.chunks, o.Workspace[chunk*size:][:size], o)
}

// winogradSums sums groups [groupLo, groupHi) of a batch for one range of sets.
func winogradSums[T Float](p *winogradGradient, groupLo, groupHi, batch, ofSets int, sums []T, o Operands[T]) {
	points := p.points * p.points
	first, last := splitRange(p.sets, p.ranges, ofSets)
	x, scratch := o.Scratch[:points*p.pointX], o.Scratch[points*p.pointX:]
	y, scratch := scratch[:(last-first)*p.together*p.y.panel], scratch[(last-first)*p.together*p.y.panel:]
	temporary, blocks := scratch[:transformTemporary], scratch[transformTemporary:]
	for group := groupLo; group < groupHi; group++ {
		at, lo, hi := p.groups.part(group, batch)
		// At each point the depth of the product is the patches: [channels patches] x [patches
		// outputs].
		transformImages(&p.x, at, lo, lo, hi, 0, p.parts, o.B, x, blocks, temporary)
		transformImages(&p.y, at, lo, lo, hi, first*p.together, min(last*p.together, ceilDiv(p.shape.K, panelColumns)), o.A, y, blocks, temporary)
		f := flagAccumulate
		if group == groupLo && !o.Add {
			f = 0
		}
		patches := at.images * (hi - lo) * p.groups.wide
		for point := range points {
			for set := first; set < last; set++ {
				b := y[(set-first)*p.together*p.y.panel+point*p.pointY:]
				pair := p.together > 1 && (set*p.together+1)*panelColumns < p.shape.K
				multiplyPatches(p, patches, pair, x[point*p.pointX:], b, sums[(point*p.sets+set)*p.pointSum:], f)
			}
		}
	}
}

// multiplyPatches adds to the sums of all input channels at one point, for one panel or a pair.
func multiplyPatches[T Float](p *winogradGradient, patches int, pair bool, x, y, sums []T, f flags) {
	a := leftFactor[T]{data: x, rowStride: 1, depthStride: p.x.to.patch}
	if pair {
		multiplyPair(p.shape.C, patches, a, y, p.y.panel, sums, p.columns(), nil, f)
	} else {
		multiply(p.shape.C, patches, a, y, sums, p.columns(), nil, f)
	}
}

// winogradCombine adds the chunks' sums for a set of panels of output channels and a range of input
// channels, and transforms them back.
func winogradCombine[T Float](p *winogradGradient, tile int, o Operands[T]) {
	points, area := p.points*p.points, p.taps*p.taps
	set := tile / p.parts
	lo, hi := splitRange(p.shape.C, p.parts, tile%p.parts)
	temporary, scratch := o.Scratch[:transformTemporary], o.Scratch[transformTemporary:]
	columns := p.columns()
	each := padStride(panelColumns * columns)
	sums, blocks := scratch[:points*each], scratch[points*each:]
	for point := range points {
		from := o.Workspace[(point*p.sets+set)*p.pointSum+lo*columns:]
		SumRows(sums[point*each:][:(hi-lo)*columns], from, p.chunks, points*p.sets*p.pointSum)
	}
	for k := set * columns; k < min((set+1)*columns, p.shape.K); k += lanes {
		transform(&p.gather, blocks, patchLayout{p.taps * lanes, lanes, area * lanes},
			sums[k-set*columns:], patchLayout{p.points * each, each, columns}, hi-lo, temporary)
		separate(o.Out[(k*p.shape.C+lo)*area:], planes{p.shape.C * area, 0, min(lanes, p.shape.K-k), 1, (hi - lo) * area}, blocks, 0)
	}
}
