//go:build !purego

package kernel

//go:generate go run -C generate ./winograd -out ../winograd_avx2_amd64.s -stubs ../winograd_stubs_amd64.go -pkg kernel
//go:generate go run -C generate ./winograd -avx512 -out ../winograd_avx512_amd64.s -stubs ../winograd_avx512_stubs_amd64.go -pkg kernel

// multiplyPointsFast is multiplyPoints in assembly, one call for all tiles of the same height.
func multiplyPointsFast[T Float](p *winogradPlan, rows, panels int, a, b, c []T) bool {
	if !useAssembly[T]() || panels > 1 && isa != avx512 {
		return false
	}
	multiply := multiplyPointsAVX2
	if isa == avx512 {
		multiply = multiplyPointsAVX512
	}
	if panels > 1 {
		multiply = multiplyPointPairsAVX512
	}
	points, depth := p.points*p.points, p.in.channels
	pb := addressOf(b, (panels*points-1)*p.pointFilter+depth*panelColumns)
	t, count, height := splitRows(rows), 0, 0
	for n := 0; n < t.count; n += count {
		count, height = t.run(n)
		lo := t.start(n)
		pa := addressOf(a[lo*p.strideIn:], (points-1)*p.pointIn+(count*height-1)*p.strideIn+depth)
		pc := addressOf(c[lo*p.columns:], (points-1)*p.pointOut+(count*height-1)*p.columns+panels*panelColumns)
		multiply(height, count, points, depth, pa, p.strideIn, p.pointIn, pb, p.pointFilter, points*p.pointFilter, pc, p.columns, p.pointOut)
	}
	return true
}
