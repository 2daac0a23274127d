//go:build (amd64 || arm64) && !purego

package kernel

// scatterFast multiplies one panel by all taps of a group of channels and adds the products to the
// padded copy, in one call.
func scatterFast[T Float](p *scatterPlan, rows, depth int, filter, panel, target []T, left, right int) bool {
	if !useAssembly[T]() {
		return false
	}
	taps := len(p.offsets)
	every := p.shape.K * rows
	filters := addressOf(filter, (taps-1)*every+depth*rows)
	pixels := addressOf(panel, depth*panelColumns)
	reach := (rows-1)*p.plane + int(p.offsets[taps-1]) + halfPanel
	c0, c1 := addressOf(target[left:], reach), addressOf(target[right:], reach)
	skip := every - depth*rows
	scatter(rows, depth, taps, filters, skip, pixels, c0, c1, &p.offsets[0], p.plane)
	return true
}

// accumulateLinesFast is accumulateLines in assembly, with one call for all offsets.
func accumulateLinesFast[T Float](p *linesPlan, images int, padded, dout []T, second, image int, one, other []T, add bool) bool {
	if !useAssembly[T]() {
		return false
	}
	count, rows := len(p.offsets), p.outH
	xRow, xImage := p.strideH*p.paddedW, p.channels*p.paddedH*p.paddedW
	pd := addressOf(dout, (images-1)*image+second+rows*p.line)
	px := addressOf(padded, p.reach(images))
	p1, p2 := addressOf(one, count*lineTaps), addressOf(other, count*lineTaps)
	multiplyLines(pd, second, image, px, &p.offsets[0], count, images, rows, p.line, xRow, xImage, p1, p2, add)
	return true
}
