//go:build !amd64 || purego

package kernel

// wideExpFast reports that this build computes exponentials in Go.
func wideExpFast([]float64) int { return 0 }
