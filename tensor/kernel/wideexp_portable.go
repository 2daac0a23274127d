//go:build !amd64 || purego

package kernel

// wideExpFast reports that this build computes exponentials in Go.
func wideExpFast([]float64) int { return 0 }

// sumExpFast reports that this build computes exponentials in Go.
func sumExpFast[T Float]([]T, int, []float64, *[SumExpRows]float64, *[SumExpRows]float64) bool {
	return false
}
