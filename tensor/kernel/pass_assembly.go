//go:build (amd64 || arm64) && !purego

package kernel

import "unsafe"

// pass is what a rule's assembly reads; it writes the sums. Coefficients and sums are float32, in
// wide rules float64.
type pass struct {
	slices             [passSlices]*float32
	count              int
	coefficients, sums unsafe.Pointer
}

// accelerate performs a rule on the first elements of the slices, with noise (if any) last, and
// returns how many.
func accelerate[T Float](r rule, s *sums[T], c coefficients[T], noise []float32, slices ...[]T) int {
	n := len(slices[0]) &^ (passLanes - 1)
	if n == 0 || !fast[T]() {
		return 0
	}
	p := pass{count: n, coefficients: unsafe.Pointer(&c), sums: unsafe.Pointer(s)}
	for i, x := range slices {
		p.slices[i] = first(x, n)
	}
	if noise != nil {
		p.slices[len(slices)] = first(noise, n)
	}
	p.run(r)
	return n
}

// accelerateWide is accelerate for the rules that compute in float64.
func accelerateWide[T Float](r rule, s *sums[float64], c coefficients[float64], slices ...[]T) int {
	n := len(slices[0]) &^ (passLanes - 1)
	if n == 0 || !fast[T]() {
		return 0
	}
	p := pass{count: n, coefficients: unsafe.Pointer(&c), sums: unsafe.Pointer(s)}
	for i, x := range slices {
		p.slices[i] = first(x, n)
	}
	p.run(r)
	return n
}

func sumRowsFast[T Float](y, x []T, rows, stride int) int {
	n := len(y) &^ (passLanes - 1)
	if n == 0 || rows == 0 || !fast[T]() {
		return 0
	}
	py, px := first(y, n), first(x, (rows-1)*stride+n)
	sumRows(py, px, n, rows, stride)
	return n
}

func scaleBytesFast[T Float](y []T, x []uint8, scale, shift T) int {
	n := len(y) &^ (passLanes - 1)
	if n == 0 || !fast[T]() {
		return 0
	}
	py, px := first(y, n), unsafe.SliceData(x[:n])
	scaleBytes(py, px, n, float32(scale), float32(shift))
	return n
}
