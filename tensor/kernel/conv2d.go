package kernel

import "github.com/pkg/errors"

// Conv2D describes a two-dimensional cross-correlation, the convolution of neural networks:
//
//	y[b k p q] = f(bias[k] + sum_{c r s} w[k c r s]
//	             x[b c p*StrideH+r*DilationH-PadH q*StrideW+s*DilationW-PadW])
//
// with x [B C H W], w [K C R S], y [B K P Q]. x is zero outside its bounds, and f is the ReLU if
// ReLU is set. Bias and ReLU belong to the forward direction; the backward directions refuse them.
type Conv2D struct {
	B, C, H, W, K, R, S  int
	StrideH, StrideW     int
	PadH, PadW           int
	DilationH, DilationW int
	Bias, ReLU           bool
	// Direct excludes Winograd's algorithms, whose rounding errors are two to four times as large.
	Direct bool
}

// P returns the height of the output, 0 if the filter does not fit once.
func (c Conv2D) P() int { return outputSize(c.H, c.R, c.StrideH, c.PadH, c.DilationH) }

// Q returns the width of the output, 0 if the filter does not fit once.
func (c Conv2D) Q() int { return outputSize(c.W, c.S, c.StrideW, c.PadW, c.DilationW) }

// outputSize returns the number of positions of a window along one axis.
func outputSize(size, taps, stride, pad, dilation int) int {
	room := size + 2*pad - (taps-1)*dilation - 1
	if room < 0 || stride < 1 {
		return 0
	}
	return room/stride + 1
}

// Validate returns an error for sizes, strides and dilations below 1, a padding below 0, a filter
// larger than the padded image, and tensors of 2^31 elements or more.
func (c Conv2D) Validate() error {
	if min(c.B, c.C, c.H, c.W, c.K, c.R, c.S) < 1 {
		return errors.Errorf("kernel: conv2d: B, C, H, W, K, R, S must be at least 1, got %d, %d, %d, %d, %d, %d, %d",
			c.B, c.C, c.H, c.W, c.K, c.R, c.S)
	}
	if min(c.StrideH, c.StrideW, c.DilationH, c.DilationW) < 1 || min(c.PadH, c.PadW) < 0 {
		return errors.Errorf("kernel: conv2d: stride and dilation must be at least 1 and padding at least 0, got %d x %d, %d x %d and %d x %d",
			c.StrideH, c.StrideW, c.DilationH, c.DilationW, c.PadH, c.PadW)
	}
	if max(c.StrideH, c.StrideW, c.DilationH, c.DilationW, c.PadH, c.PadW, c.R, c.S) > 1<<20 {
		return errors.Errorf("kernel: conv2d: filter sizes, strides, dilations and padding must be at most %d", 1<<20)
	}
	if c.P() < 1 || c.Q() < 1 {
		return errors.Errorf("kernel: conv2d: a filter of %d x %d with dilation %d x %d does not fit into an image of %d x %d with padding %d x %d",
			c.R, c.S, c.DilationH, c.DilationW, c.H, c.W, c.PadH, c.PadW)
	}
	for _, s := range [][]int{
		{c.B, c.C, c.H, c.W}, {c.K, c.C, c.R, c.S}, {c.B, c.K, c.P(), c.Q()},
		{c.C, c.H + 2*c.PadH, c.W + 2*c.PadW},
		{c.K, c.H + 2*c.DilationH*c.R, c.W + 2*c.DilationW*c.S},
	} {
		if _, ok := product(s...); !ok {
			return errors.Errorf("kernel: conv2d: a tensor must have at most %d elements, got shape %v", maxElements, s)
		}
	}
	return nil
}

// validateBackward also refuses the epilogue: the gradients of a bias and of a ReLU are not
// computed here.
func (c Conv2D) validateBackward() error {
	if c.Bias || c.ReLU {
		return errors.Errorf("kernel: conv2d: Bias and ReLU must be false for a backward direction, got %t and %t", c.Bias, c.ReLU)
	}
	return c.Validate()
}

func (c Conv2D) sizeX() int { return c.B * c.C * c.H * c.W }
func (c Conv2D) sizeW() int { return c.K * c.C * c.R * c.S }
func (c Conv2D) sizeY() int { return c.B * c.K * c.P() * c.Q() }

// convPlan is a direct convolution in any direction.
type convPlan struct {
	window
	outputs int  // output channels of convTile
	bias    bool // whether convTile adds a bias
	relu    bool
	shape   Conv2D
	filter  filterPlan
}

// Forward prepares y = f(conv(x, w) + bias). Operands: A is x, B is w, Bias is [K] if Bias is set,
// Out is y.
func (c Conv2D) Forward() (Routine, error) {
	if err := c.Validate(); err != nil {
		return Routine{}, err
	}
	if a := c.suitsWinograd(c.C, c.K, c.directCost()); a != nil {
		return c.winograd(a, false), nil
	}
	return c.direct(), nil
}

// direct prepares Forward as a product of the filter [K, C*R*S] and the matrix of image patches
// [C*R*S, B*P*Q] (implicit GEMM: the matrix is packed panel by panel and never stored as a whole).
func (c Conv2D) direct() Routine {
	p := convPlan{outputs: c.K, bias: c.Bias, relu: c.ReLU, shape: c}
	p.window = c.imageWindow()
	vertical, horizontal := c.axes()
	p.choose(vertical, horizontal)
	p.build(vertical, horizontal, c.K)
	bias := 0
	if c.Bias {
		bias = c.K
	}
	return Routine{
		Phases:  []int{p.tiles()},
		Rows:    c.B,
		Unit:    p.images,
		Scratch: p.paddedSize() + maxDepth*panelColumns,
		kind:    kindConv2DForward,
		sizeA:   c.sizeX(), sizeB: c.sizeW(), sizeBias: bias, sizeOut: c.sizeY(),
		conv: p,
	}
}

// imageWindow returns the window of a filter that slides over x.
func (c Conv2D) imageWindow() window {
	return window{
		channels: c.C, height: c.H, width: c.W,
		spacingH: 1, spacingW: 1, padH: c.PadH, padW: c.PadW,
		batch: c.B, outH: c.P(), outW: c.Q(),
	}
}

// axes returns the filter's two axes in the forward direction.
func (c Conv2D) axes() (vertical, horizontal axis) {
	return axis{c.R, c.DilationH, c.StrideH}, axis{c.S, c.DilationW, c.StrideW}
}

// BackwardInput prepares the gradient with respect to x,
//
//	dx[b c h w] = sum_{k r s} w[k c r s] dout[b k p q]
//
// with p*StrideH = h+PadH-r*DilationH, and q likewise. Operands: A is dout [B K P Q], B is w, Out
// is dx [B C H W]. Phase 0 packs the filter into the workspace, phase 1 computes dx.
func (c Conv2D) BackwardInput() (Routine, error) {
	// The cheapest of three: one of Winograd's algorithms, scattering the products, or convolving
	// dout, with StrideH-1 and StrideW-1 zeros between its elements, with the flipped filter.
	if err := c.validateBackward(); err != nil {
		return Routine{}, err
	}
	if a := c.suitsWinograd(c.K, c.C, c.backwardCost()); a != nil {
		return c.winograd(a, true), nil
	}
	if c.scatterCost() < c.convolveCost() {
		return c.scatter(), nil
	}
	return c.convolveBack(), nil
}

// convolveBack prepares BackwardInput as a convolution with the flipped filter.
func (c Conv2D) convolveBack() Routine {
	p := convPlan{outputs: c.C, shape: c}
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
		Scratch:   p.paddedSize() + maxDepth*panelColumns,
		kind:      kindConv2DBackwardInput,
		sizeA:     c.sizeY(), sizeB: c.sizeW(), sizeOut: c.sizeX(),
		conv: p,
	}
}

// flipFilter writes flipped[c k r s] = w[k c R-1-r S-1-s] for a range of channels c.
func flipFilter[T Float](p *convPlan, tile int, w, flipped []T) {
	s := p.shape
	area := s.R * s.S
	lo, hi := splitRange(s.C, min(s.C, tileCount), tile)
	for c := lo; c < hi; c++ {
		for k := range s.K {
			from := w[(k*s.C+c)*area:][:area]
			to := flipped[(c*s.K+k)*area:][:area]
			for i, v := range from {
				to[area-1-i] = v
			}
		}
	}
}

// convTile convolves the pixels of one tile. It pads the images, then packs one panel of patches
// after another and multiplies each by the whole filter [outputs, taps].
func convTile[T Float](p *convPlan, tile, batch int, x, filter, bias, y, scratch []T) {
	at := p.part(tile, batch)
	padded := scratch[:p.paddedSize()]
	panel := scratch[len(padded):]
	// The padded copy makes every tap of every pixel valid, so that no bounds are checked below.
	pad(&p.window, padded, x, at.image, at.images, 0, p.channels, at.row)
	depth := len(p.taps)
	blocks := depthBlocks(depth)
	pixels := at.images * at.rows * p.outW
	inPlace := p.inPlace(p.outputs) && at.images*at.rows*p.halves%2 == 0
	for block := range blocks {
		k0, k1 := splitRange(depth, blocks, block)
		f := p.epilogue(block == 0, block == blocks-1)
		if inPlace && convInPlace(p, at, k0, k1, filter, bias, y, padded, f) {
			continue
		}
		a := leftFactor[T]{data: filter[k0:], rowStride: depth, depthStride: 1}
		out := y[at.image*p.outputs*p.outH*p.outW+at.row*p.outW:]
		// Each panel is packed once and multiplied by all output channels while it is in the
		// first-level cache.
		for j := 0; j < pixels; j += panelColumns {
			packWindow(panel, padded, &p.panels[j/panelColumns], p.taps[k0:k1])
			convPanel(p, a, j, min(j+panelColumns, pixels), k1-k0, panel, bias, out, f)
		}
	}
}

// convInPlace multiplies taps [k0, k1) of all groups of output channels by the windows as they lie
// in the padded images, with one call per group. It reports false, having done nothing, if there is
// no assembly for it.
func convInPlace[T Float](p *convPlan, at part, k0, k1 int, filter, bias, y, padded []T, f flags) bool {
	depth, plane := len(p.taps), p.outH*p.outW
	places := p.places[:2*at.images*at.rows*p.halves]
	groups := splitRows(p.outputs)
	for group := range groups.count {
		k, end := groups.rows(group)
		some := bias
		if p.bias {
			some = bias[k:]
		}
		a := leftFactor[T]{data: filter[k*depth+k0:], rowStride: depth, depthStride: 1}
		out := y[(at.image*p.outputs+k)*plane+at.row*p.outW:]
		if !multiplyWindowsFast(end-k, a, padded, places, p.taps[k0:k1], out, plane, some, f) {
			return false
		}
	}
	return true
}

// epilogue is Gemm's, with a bias per row.
func (p *convPlan) epilogue(first, last bool) flags {
	kind := NoBias
	if p.bias {
		kind = BiasRow
	}
	return Gemm{Bias: kind, ReLU: p.relu}.epilogue(first, last)
}

// convPanel multiplies the filter by the packed panel of pixels [lo, hi) and stores the result. A
// panel that is not full, or that crosses from one image to the next, is stored in pieces.
func convPanel[T Float](p *convPlan, filter leftFactor[T], lo, hi, depth int, panel, bias, y []T, f flags) {
	plane, run := p.outH*p.outW, p.rows*p.outW
	if place := &p.panels[lo/panelColumns]; place.whole && lo+panelColumns == hi {
		multiply(p.outputs, depth, filter, panel, y[place.output:], plane, bias, f)
		return
	}
	groups := splitRows(p.outputs)
	for group := range groups.count {
		k, end := groups.rows(group)
		var sums [maxRows * panelColumns]T
		multiplySums(end-k, depth, filter.tile(groups, group), panel, &sums)
		for i := lo; i < hi; {
			n := min(hi, (i/run+1)*run) - i
			storeTile(end-k, n, sums[i-lo:], y[(i/run*p.outputs+k)*plane+i%run:], plane, biasOf(bias, k, end, f), f)
			i += n
		}
	}
}
