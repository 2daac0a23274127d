//go:build !amd64 || purego

package kernel

func accelerate[T Float](rule, *sums[T], coefficients[T], []float32, ...[]T) int { return 0 }

func accelerateWide[T Float](rule, *sums[float64], coefficients[float64], ...[]T) int { return 0 }

func sumRowsFast[T Float](y, x []T, rows, stride int) int { return 0 }

func scaleBytesFast[T Float](y []T, x []uint8, scale, shift T) int { return 0 }
