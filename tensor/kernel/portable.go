//go:build (!amd64 && !arm64) || purego

package kernel

// These stubs take the place of assembly in builds without it. Each reports that it did nothing.

func multiplyFast[T Float](rows, depth int, a leftFactor[T], b, c []T, stride int, bias []T, f flags) bool {
	return false
}

func multiplyPairFast[T Float](rows, depth int, a leftFactor[T], b []T, panel int, c []T, stride int, bias []T, f flags) bool {
	return false
}

func multiplyPointsFast[T Float](p *winogradPlan, rows, panels int, a, b, c []T) bool { return false }

func multiplyTapsFast[T Float](data []T, taps []int32, together int, depthOffsets []int32, b, c []T, stride int, accumulate bool) bool {
	return false
}

func copyLinesFast[T Float](to []T, toLine int, from []T, fromLine, lines, width int) bool {
	return false
}

func zipLinesFast[T Float](to []T, toLine int, even, odd []T, fromLine, lines, pairs int) bool {
	return false
}

func unzipLinesFast[T Float](even, odd []T, toLine int, from []T, fromLine, lines, pairs int) bool {
	return false
}

func tapLineFast[T Float](line, copies []T, class *tapClass, weights []T, e *epilogue[T]) bool {
	return false
}

func tapProductsFast[T Float](sums, line, copies []T, class *tapClass, add bool) bool { return false }

func packColumnsFast[T Float](panel, source []T, stride, depth, columns int) bool { return false }

func packGroupFast[T Float](to, from []T, rows, depth int) int { return 0 }

func packWindowFast[T Float](panel, padded []T, pixels *[panelColumns]int32, runs *[6]int32, taps []int32) bool {
	return false
}

func maxPlanesFast[T Float](p *poolPlan, x, y []T, planes int) bool { return false }

func maxIndicesFast[T Float](q *Windows2x2, places []uint8, x []T) bool { return false }

func unpoolGradFast[T Float](q *Windows2x2, dx, dout []T, places []uint8, mask uint8) bool {
	return false
}

func scatterFast[T Float](p *scatterPlan, rows, depth int, filter, panel, target []T, left, right int) bool {
	return false
}

func multiplyAddsFast(loops int) (operations float64, ok bool) { return 0, false }

func accumulateLinesFast[T Float](p *linesPlan, images int, padded, dout []T, second, image int, first, other []T, add bool) bool {
	return false
}

func accumulateFourLinesFast[T Float](p *linesPlan, images int, padded, dout []T, second, image int, to []T, each int, add bool) bool {
	return false
}

func copyRowsFast[T Float](panels []T, size int, source []T, stride, depth, whole int) bool {
	return false
}

func multiplyInPlaceFast[T Float](rows, panels, depth int, a []T, aStride int, b []T, bStride int, sums []T, add bool) bool {
	return false
}

func multiplyWindowsFast[T Float](rows int, a leftFactor[T], padded []T, places, taps []int32, y []T, plane int, bias []T, f flags) bool {
	return false
}

func accelerate[T Float](rule, *sums[T], coefficients[T], []float32, ...[]T) int { return 0 }

func acceleratePlanes[T, S Float, C any](rule, int, []sums[S], []C, ...[]T) int { return 0 }

func sumRowsFast[T Float](y, x []T, rows, stride int) int { return 0 }

func scaleBytesFast[T Float](y []T, x []uint8, scale, shift T) int { return 0 }

func transformFast[T Float](m *linearMap, to []T, toAt patchLayout, from []T, fromAt patchLayout, count int, temporary []T) bool {
	return false
}

func interleaveFast[T Float](to []T, toRow int, from []T, p planes) bool { return false }

func separateFast[T Float](to []T, p planes, from []T, fromRow int) bool { return false }

// useAssembly reports that this build has none.
func useAssembly[T Float]() bool { return false }
