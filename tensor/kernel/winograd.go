package kernel

// winogradPlan computes a convolution, or the gradient of its input, patch by patch with an
// algorithm of Cook and Toom. It has three steps:
//
//	transform the input    each patch of points x points inputs becomes a value per point
//	multiply               at each point, [patches channels] by the filter's [channels outputs]
//	transform back         the products of a patch become patch x patch outputs
//
// A patch of 7 x 7 outputs with a filter of 5 x 5 takes 169 multiplications instead of 1225.
//
// The patches of a row tile are processed together, so that the transformed input stays in cache
// between the first step and the second.
//
// Root mean square errors, relative to the output's root mean square, for 64 channels of normal
// numbers, and for the gradient of a filter:
//
//	filter  patch   output  filter gradient
//	5 x 5   7 x 7   1.0e-6  7.2e-7
//	5 x 5   4 x 4   4.4e-7  4.1e-7
//	3 x 3   4 x 4   8.0e-7  7.9e-7
//	direct          2.6e-7  1.6e-7
//
// The largest errors of outputs are some 7 times these.
type winogradPlan struct {
	*cookToom
	shape       Conv2D
	backward    bool
	in          imageTransform
	out         blockedImage
	back        *linearMap // of the products
	groups      patchGroups
	tileRows    int // rows of patches that are processed at a time
	ranges      int // ranges of panels of output channels, each a tile
	filterParts int // ranges of input channels, each a tile of the filter's transform
	strideIn    int // elements from one patch to the next, at a point of the transformed input
	pointIn     int // elements from one point to the next in the transformed input
	pointOut    int // the same in the products
	pointFilter int // the same in a panel of the transformed filter
	columns     int // of the products: one panel, or two in AVX-512 if there are two
	blocksIn    int // elements of all blocks of the input
	// blocksOut is the number of elements from the blocks of one group of lanes output channels to
	// the next; it is 0 if all groups share the blocks.
	blocksOut int
}

const (
	// rowTileElements is the size of a row tile's transformed input: 24 Ki float32 are 96 KiB. If
	// the transformed filter, which each row tile reads, is large, the size is 1/rowTileFraction of
	// the filter's; but at most groupElements: 2 Mi float32 are 8 MiB.
	rowTileElements = 24 << 10
	rowTileFraction = 5
	groupElements   = 1 << 21
	// transformedElements bounds the transformed filter: 16 Mi float32 are 64 MiB. The last filters
	// of a ResNet, from 512 to 512 channels, have 9.4 million elements. That is more than caches
	// hold, but few row tiles read it.
	transformedElements = 1 << 24
)

// winograd prepares the forward direction or the gradient of the input. Phase 0 transforms the
// filter into the workspace, phase 1 does the rest.
func (c Conv2D) winograd(a *cookToom, backward bool) Routine {
	p := winogradPlan{cookToom: a, shape: c, backward: backward}
	points, x, y, extraBands := p.points*p.points, c.blockedX(p.patch), c.blockedY(p.patch), 0
	p.in, p.out, p.back = imageTransform{blockedImage: x, m: &p.input, patch: p.patch}, y, &p.output
	if backward {
		p.in, p.out, p.back = imageTransform{blockedImage: y, m: &p.spread, patch: p.patch}, x, &p.overlap
		extraBands = 1 // a row of patches also adds to output rows of the next one
	}
	// The transformed input is [points][patches][channels]: a matrix of patches by channels for
	// each point, whose rows are padded to whole registers.
	p.strideIn = ceilDiv(p.in.channels, lanes) * lanes
	panels := ceilDiv(p.out.channels, panelColumns)
	p.columns = panelColumns
	if isa == avx512 && panels > 1 {
		p.columns = 2 * panelColumns
	}
	p.pointFilter = padStride(p.in.channels * panelColumns)
	most := p.setRowTiles(c, extraBands, panels)
	p.pointIn, p.pointOut = padStride(most*p.strideIn), padStride(most*p.columns)
	p.in.wide, p.in.to, p.in.panel = p.groups.wide, patchLayout{p.points * p.pointIn, p.pointIn, p.strideIn}, panelColumns
	// If there are few groups of patches, ranges of output channels provide more tiles. Each of
	// them transforms the group's input again.
	p.ranges = min(panels, ceilDiv(tileCount, p.groups.count()))
	p.filterParts = ceilDiv(p.in.channels, panelColumns)
	p.blocksIn = panelColumns / lanes * p.in.blocksSize(p.groups.highest())
	blocks := p.outSize(p.groups.highest())
	if p.tileRows < p.groups.highest() { // the blocks keep what consecutive row tiles share
		p.in.blocks = p.blocksIn
		p.blocksIn *= ceilDiv(p.in.channels, panelColumns)
		if backward {
			p.blocksOut = blocks
			blocks *= ceilDiv(p.out.channels, lanes)
		}
	}
	blocks = max(panelColumns*c.R*c.S*lanes, p.blocksIn+blocks)
	plan := Routine{
		Phases: []int{panels * p.filterParts, p.groups.count() * p.ranges},
		Rows:   c.B,
		Unit:   p.groups.images,

		Preparation: 1, // the filter's transform
		Workspace:   panels * points * p.pointFilter,
		Scratch:     points*(p.pointIn+p.pointOut) + transformTemporary + blocks,
		kind:        kindConv2DWinograd, plan: &p,
		sizeA: c.sizeX(), sizeB: c.sizeW(), sizeOut: c.sizeY(),
	}
	if backward {
		plan.sizeA, plan.sizeOut = plan.sizeOut, plan.sizeA
	} else if c.Bias {
		plan.sizeBias = c.K
	}
	return plan
}

// setRowTiles divides the batch into groups, and a group that is one large image, or a band of it,
// into row tiles. It returns the maximum number of patches of a row tile.
func (p *winogradPlan) setRowTiles(c Conv2D, extraBands, panels int) int {
	patch := p.points * p.points * p.strideIn
	most := min(max(rowTileElements, panels*p.points*p.points*p.pointFilter/rowTileFraction), groupElements) / patch
	p.groups = c.groups(p.patch, extraBands, most, tileCount)
	p.tileRows = p.groups.highest()
	if p.groups.high*p.groups.wide <= most {
		return p.groups.most()
	}
	p.groups.rows = ceilDiv(p.groups.bands, ceilDiv(tileCount, c.B))
	p.tileRows = p.groups.highest()
	p.tileRows = ceilDiv(p.tileRows, ceilDiv(p.tileRows, max(1, most/p.groups.wide)))
	return p.tileRows * p.groups.wide
}

// outSize returns the number of elements of the blocks that some rows of patches produce.
func (p *winogradPlan) outSize(rows int) int { return ((rows-1)*p.patch + p.back.rows) * p.out.row() }
