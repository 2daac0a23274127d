//go:build !purego

package kernel

import "unsafe"

// convolvePlaneFast convolves a plane in AVX-512.
func convolvePlaneFast[T Float](p *planeTaps, to, from, filter []T, e *epilogue[T]) bool {
	if isa != avx512 || !useAssembly[T]() {
		return false
	}
	pTo, pFrom, weights := addressOf(to, p.outHeight*p.outWidth), addressOf(from, p.height*p.width), addressOf(filter, p.side*p.side)
	scalars, masks := (*float32)(unsafe.Pointer(e)), &p.masks[0]
	switch {
	case p.side == 3 && p.stride == 1:
		tapPlane3x3Stride1AVX512(pTo, pFrom, weights, scalars, masks, p.blocks, p.height, p.width, p.outHeight, p.outWidth, p.padH, p.padW)
	case p.side == 3:
		tapPlane3x3Stride2AVX512(pTo, pFrom, weights, scalars, masks, p.blocks, p.height, p.width, p.outHeight, p.outWidth, p.padH, p.padW)
	case p.stride == 1:
		tapPlane5x5Stride1AVX512(pTo, pFrom, weights, scalars, masks, p.blocks, p.height, p.width, p.outHeight, p.outWidth, p.padH, p.padW)
	default:
		tapPlane5x5Stride2AVX512(pTo, pFrom, weights, scalars, masks, p.blocks, p.height, p.width, p.outHeight, p.outWidth, p.padH, p.padW)
	}
	return true
}
