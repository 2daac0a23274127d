//go:build (amd64 || arm64) && !purego

package kernel

import "unsafe"

// useAssembly reports whether T runs in assembly: float32, or a type defined from it, if the
// processor has one of the instruction sets.
func useAssembly[T Float]() bool {
	var zero T
	return isa > portableGo && unsafe.Sizeof(zero) == 4
}

// addressOf returns the address of the first of n elements. It panics if the slice has fewer: the
// assembly checks nothing, so every slice must pass through here with the number of elements that
// the assembly reaches.
func addressOf[T Float](x []T, n int) *float32 {
	return (*float32)(unsafe.Pointer(unsafe.SliceData(x[:n])))
}

func offset(p *float32, elements int) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*elements))
}

// transforms holds the assembly function of each linear map, indexed by the map's number.
type transforms [18]func(to, from, temporary *float32, toRow, toColumn, toPatch, fromRow, fromColumn, fromPatch, count int)

// pass is the argument of a rule's assembly, which writes the sums. Coefficients and sums are
// float32, or float64 in wide rules. Each plane has its own coefficients and sums, one plane after
// another.
type pass struct {
	slices             [passSlices]*float32
	count              int
	coefficients, sums unsafe.Pointer
	planes             int // at least 1; the assembly counts it down
	distance           int // bytes from one plane of a slice to the next
}
