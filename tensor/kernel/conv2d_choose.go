package kernel

// Each direction of a convolution uses the cheapest of several algorithms, by the costs at the end
// of this file.

// Forward prepares y = f(conv(x, w) + bias). Operands: A is x, B is w, Bias is [K] if Bias is set,
// Out is y.
func (c Conv2D) Forward() (Routine, error) {
	if err := c.Validate(); err != nil {
		return Routine{}, err
	}
	if a := c.suitsWinograd(c.C, c.K, c.directCost()); a != nil {
		return c.winograd(a, false), nil
	}
	if c.suitsChannels() {
		return c.channels(), nil
	}
	return c.flattened().direct(), nil
}

// flattened returns a pointwise convolution with longer lines, which fill panels better. It joins
// lines until their length is a multiple of half a panel, or the whole image is one line.
func (c Conv2D) flattened() Conv2D {
	if !c.isPointwise() || c.W%(panelColumns/2) == 0 {
		return c
	}
	lines := 2
	for lines < c.H && (c.H%lines > 0 || lines*c.W%(panelColumns/2) > 0) {
		lines++
	}
	c.H, c.W = ceilDiv(c.H, lines), min(lines, c.H)*c.W
	return c
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
	return c.flattened().convolveBack(), nil
}

// BackwardFilter prepares the gradient with respect to w,
//
//	dw[k c r s] = sum_{b p q} dout[b k p q]
//	              x[b c p*StrideH+r*DilationH-PadH q*StrideW+s*DilationW-PadW].
//
// Operands: A is dout [B K P Q], B is x [B C H W], Out is dw [K C R S]. Phase 0 sums over chunks of
// the batch, phase 1 adds the chunks in order.
func (c Conv2D) BackwardFilter() (Routine, error) {
	if err := c.validateBackward(); err != nil {
		return Routine{}, err
	}
	if a := c.suitsWinogradFilter(); a != nil {
		return c.filterWinograd(a), nil
	}
	if c.suitsLines() {
		return c.filterLines(), nil
	}
	return c.flattened().filterPanels(), nil
}

// The costs are measured cycles per image in AVX2, whatever the instruction set, so that the chosen
// algorithm, and with it the order of the sums, depends only on the shape. A full register tile of
// six rows takes six cycles per step of the depth.

// Winograd's algorithms are chosen only if they cost less than winogradGain times the direct
// algorithm, because their rounding errors are larger. For gradients of filters the factor is
// filterGain: there they are faster than the model predicts. For 16 to 16 channels of 32 x 32 they
// take 0.62 of the direct algorithm's time in AVX2, 0.77 in AVX-512.
const (
	winogradGain = 0.8
	filterGain   = 0.85
)

// directCost estimates the direct forward direction.
func (c Conv2D) directCost() float64 {
	panels := float64(c.P()*c.Q()) / panelColumns
	return panels * float64(6*ceilDiv(c.K, minRows)+1) * float64(c.C*c.R*c.S)
}

// backwardCost estimates the direct gradient of the input.
func (c Conv2D) backwardCost() float64 {
	return min(c.scatterCost(), c.convolveCost()) * float64(c.R*c.S)
}

// directFilterCost estimates the direct gradient of the filter.
func (c Conv2D) directFilterCost() float64 {
	if c.suitsLines() {
		return float64(c.C*c.R*ceilDiv(c.K, 2)*c.P()*ceilDiv(c.Q(), lineVector)) * 6
	}
	return float64(ceilDiv(c.C*c.R*c.S, minRows)*ceilDiv(c.K, panelColumns)*c.P()*c.Q()) * 6.5
}

// winogradCost estimates a convolution of in channels to out channels: products, transforms of both
// sides, and the filter's transform, which all images share.
func (c Conv2D) winogradCost(a *cookToom, in, out int) float64 {
	points, patches := float64(a.points*a.points), float64(ceilDiv(c.P(), a.patch)*ceilDiv(c.Q(), a.patch))
	panels := float64(ceilDiv(out, panelColumns))
	products := points * panels * patches * float64(in+5)
	transforms := patches * float64(ceilDiv(in, minLanes)+ceilDiv(out, minLanes)) * (3.6*points + 12*float64(a.patch*a.patch))
	filter := points * panels * panelColumns * float64(in) * 1.6 / float64(max(c.B, c.FilterImages))
	return products + transforms + filter
}

// algorithms returns the algorithms for the filter's size, none if the filter is not square or has
// a stride or dilation.
func (c Conv2D) algorithms() []*cookToom {
	if c.R != c.S || c.StrideH != 1 || c.StrideW != 1 || c.DilationH != 1 || c.DilationW != 1 {
		return nil
	}
	switch c.R {
	case 3:
		return []*cookToom{cookToom43}
	case 5:
		return []*cookToom{cookToom45, cookToom75}
	}
	return nil
}

// suitsWinograd returns the cheapest algorithm if it is sufficiently cheaper than the direct one
// and its transformed filter fits in transformedElements; otherwise nil.
func (c Conv2D) suitsWinograd(in, out int, direct float64) *cookToom {
	var best *cookToom
	least := winogradGain * direct
	for _, a := range c.algorithms() {
		cost := c.winogradCost(a, in, out)
		if !c.Direct && cost < least && a.points*a.points*in*ceilDiv(out, panelColumns)*panelColumns <= transformedElements {
			best, least = a, cost
		}
	}
	return best
}

// suitsWinogradFilter is suitsWinograd for the gradient of the filter. The cost includes adding the
// sums of the chunks, whose memory is bounded by sumsElements.
func (c Conv2D) suitsWinogradFilter() *cookToom {
	var best *cookToom
	least := filterGain * c.directFilterCost()
	for _, a := range c.algorithms() {
		sums := float64(a.points * a.points * c.C * ceilDiv(c.K, panelColumns) * panelColumns)
		cost := c.winogradCost(a, c.C, c.K) + sums*float64(min(tileCount, c.filterChunks(a)))/float64(c.B)
		if !c.Direct && cost < least && sums <= sumsElements && ceilDiv(c.Q(), a.patch) <= maxDepth {
			best, least = a, cost
		}
	}
	return best
}
