//go:build !purego

package kernel

// multiplyAddsFast makes twelve vector multiply-adds in a loop.
func multiplyAddsFast(loops int) (operations float64, ok bool) {
	if !fast[float32]() || loops < 1 {
		return 0, false
	}
	if inUse == avx512 {
		multiplyAddsAVX512(loops)
		return float64(loops * 12 * 2 * vector * 2), true
	}
	multiplyAddsAVX2(loops)
	return float64(loops * 12 * vector * 2), true
}
