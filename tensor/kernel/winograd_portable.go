//go:build !amd64 || purego

package kernel

func transformFast[T Float](m *linearMap, to []T, toAt lattice, from []T, fromAt lattice, count int, temporary []T) bool {
	return false
}

func interleaveFast[T Float](to []T, toRow int, from []T, p planes) bool { return false }

func separateFast[T Float](to []T, p planes, from []T, fromRow int) bool { return false }
