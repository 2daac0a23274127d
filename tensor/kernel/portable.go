//go:build !amd64 || purego

package kernel

// useAVX2 is never set in a build without assembly.
var useAVX2 = false

func multiplyFast[T Float](rows, depth int, a left[T], b, c []T, stride int, bias []T, f flags) bool {
	return false
}

func multiplyTableFast[T Float](data []T, rowOffsets, depthOffsets []int32, b, c []T, stride int, accumulate bool) bool {
	return false
}

func packColumnsFast[T Float](panel, source []T, stride, depth, columns int) bool { return false }

func packWindowFast[T Float](panel, padded []T, p *pixelPanel, taps []int32) bool { return false }

func maxLineFast[T Float](y, upper, lower []T) bool { return false }

func maxLineBackwardFast[T Float](dx, x, gradient []T, width int) bool { return false }

func vectorLength[T Float]() int { return 1 }

func expm1Fast(y, x []float32) bool { return false }

func scatterFast[T Float](p *scatterPlan, rows, depth int, filter, panel, target []T, left, right int) bool {
	return false
}

func multiplyAddsFast(loops int) (operations float64, ok bool) { return 0, false }
