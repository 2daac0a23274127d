//go:build !purego

package kernel

// accumulateFourLinesFast exists only in AVX-512, which has registers for the sums.
func accumulateFourLinesFast[T Float](p *linesPlan, images int, padded, dout []T, second, image int, to []T, each int, add bool) bool {
	if !useAssembly[T]() || isa != avx512 {
		return false
	}
	count, rows := len(p.offsets), p.outH
	xRow, xImage := p.strideH*p.paddedW, p.channels*p.paddedH*p.paddedW
	pd := addressOf(dout, (images-1)*image+3*second+rows*p.line)
	px := addressOf(padded, p.reach(images))
	accumulateFourLinesAVX512(pd, second, image, px, &p.offsets[0], count, images, rows, p.line, xRow, xImage, addressOf(to, 4*each), each, add)
	return true
}
