//go:build (amd64 || arm64) && !purego

package kernel

import "unsafe"

// accelerate runs a rule in assembly on the first elements of the slices and returns their number,
// a multiple of passLanes. noise, if not nil, is the last slice.
func accelerate[T Float](r rule, s *sums[T], c coefficients[T], noise []float32, slices ...[]T) int {
	n := len(slices[0]) &^ (passLanes - 1)
	if n == 0 || !useAssembly[T]() {
		return 0
	}
	p := pass{count: n, coefficients: unsafe.Pointer(&c), sums: unsafe.Pointer(s), planes: 1}
	for i, x := range slices {
		p.slices[i] = addressOf(x, n)
	}
	if noise != nil {
		p.slices[len(slices)] = addressOf(noise, n)
	}
	p.run(r)
	return n
}

// acceleratePlanes runs a rule in assembly on the first elements of each plane of the slices. Each
// plane has coefficients C and sums of S. It returns the number of elements of each plane that were
// processed.
func acceleratePlanes[T, S Float, C any](r rule, planes int, s []sums[S], c []C, slices ...[]T) int {
	if planes == 0 || !useAssembly[T]() {
		return 0
	}
	width := len(slices[0]) / planes
	n := width &^ (passLanes - 1)
	if n == 0 {
		return 0
	}
	p := pass{count: n, planes: planes, distance: 4 * width}
	p.coefficients, p.sums = unsafe.Pointer(unsafe.SliceData(c)), unsafe.Pointer(unsafe.SliceData(s))
	for i, x := range slices {
		p.slices[i] = addressOf(x, (planes-1)*width+n)
	}
	p.run(r)
	return n
}

// These declarations fail to compile if the coefficients are not in the order in which the assembly
// reads them, which generate/rules/wide.go defines.
var (
	_ = [1]int{}[unsafe.Offsetof(Affine{}.Mean)]
	_ = [1]int{}[unsafe.Offsetof(Affine{}.Scale)-8]
	_ = [1]int{}[unsafe.Offsetof(Affine{}.Shift)-16]
	_ = [1]int{}[unsafe.Offsetof(Combination{}.Mean)]
	_ = [1]int{}[unsafe.Offsetof(Combination{}.B)-8]
	_ = [1]int{}[unsafe.Offsetof(Combination{}.A)-16]
	_ = [1]int{}[unsafe.Offsetof(Combination{}.C)-24]
)

func sumRowsFast[T Float](y, x []T, rows, stride int) int {
	n := len(y) &^ (passLanes - 1)
	if n == 0 || rows == 0 || !useAssembly[T]() {
		return 0
	}
	py, px := addressOf(y, n), addressOf(x, (rows-1)*stride+n)
	sumRows(py, px, n, rows, stride)
	return n
}

func scaleBytesFast[T Float](y []T, x []uint8, scale, shift T) int {
	n := len(y) &^ (passLanes - 1)
	if n == 0 || !useAssembly[T]() {
		return 0
	}
	py, px := addressOf(y, n), unsafe.SliceData(x[:n])
	scaleBytes(py, px, n, float32(scale), float32(shift))
	return n
}
