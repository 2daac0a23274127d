package kernel

// The costs are cycles for an image in AVX2, as measured. Which way is chosen, and with it the
// order of the sums, depends only on the shape. A product of a full tile of six rows takes six
// cycles for each depth.

// winogradGain is the share of the direct cost below which Winograd's algorithms are chosen: their
// errors are larger. For gradients of filters it is filterGain: there they take less time than
// their cost says, for 16 to 16 channels of 32 x 32 .62 of the direct way's in AVX2, .77 in
// AVX-512.
const (
	winogradGain = 0.8
	filterGain   = 0.85
)

// directCost is the cost of the forward direction.
func (c Conv2D) directCost() float64 {
	panels := float64(c.P()*c.Q()) / panelColumns
	return panels * float64(6*ceilDiv(c.K, minRows)+1) * float64(c.C*c.R*c.S)
}

// backwardCost is the cost of the input's gradient.
func (c Conv2D) backwardCost() float64 {
	return min(c.scatterCost(), c.convolveCost()) * float64(c.R*c.S)
}

// directFilterCost is the cost of the filter's gradient.
func (c Conv2D) directFilterCost() float64 {
	if c.suitsLines() {
		return float64(c.C*c.R*ceilDiv(c.K, 2)*c.P()*ceilDiv(c.Q(), lineVector)) * 6
	}
	return float64(ceilDiv(c.C*c.R*c.S, minRows)*ceilDiv(c.K, panelColumns)*c.P()*c.Q()) * 6.5
}

// winogradCost is the cost of a convolution of in channels to out channels: products, transforms of
// both sides, and the filter's transform, which all images share.
func (c Conv2D) winogradCost(a *cookToom, in, out int) float64 {
	points, patches := float64(a.points*a.points), float64(ceilDiv(c.P(), a.patch)*ceilDiv(c.Q(), a.patch))
	panels := float64(ceilDiv(out, panelColumns))
	products := points * panels * patches * float64(in+5)
	transforms := patches * float64(ceilDiv(in, minLanes)+ceilDiv(out, minLanes)) * (3.6*points + 12*float64(a.patch*a.patch))
	filter := points * panels * panelColumns * float64(in) * 1.6 / float64(c.B)
	return products + transforms + filter
}

// algorithms returns the algorithms for the filter's size.
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

// suitsWinograd returns the algorithm that costs least, if it costs less than the direct way and
// the transformed filter takes little memory.
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

// suitsWinogradFilter is suitsWinograd for the filter's gradient: the sums of chunks take memory
// and time, too.
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
