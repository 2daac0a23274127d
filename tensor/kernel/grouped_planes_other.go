//go:build !amd64 || purego

package kernel

// convolvePlaneFast returns false, so the caller computes the plane from a copy.
func convolvePlaneFast[T Float](p *planeTaps, to, from, filter []T, e *epilogue[T]) bool {
	return false
}
