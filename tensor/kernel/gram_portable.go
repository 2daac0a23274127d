//go:build !amd64 || purego

package kernel

// gramTile reports that this build computes inner products one by one, in Go.
func gramTile() (height, width int) { return 1, 1 }

func gramTileFast(*gramSums, []float64, []float64, int) bool { return false }

func widenFast([]float64, []float32) int { return 0 }
