//go:build !purego

package kernel

// multiplyAddsFast makes twelve vector multiply-adds in a loop.
func multiplyAddsFast(loops int) (operations float64, ok bool) {
	if !useAVX2 || loops < 1 {
		return 0, false
	}
	multiplyAddsAVX2(loops)
	return float64(loops * 12 * vector * 2), true
}
