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
