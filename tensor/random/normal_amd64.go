//go:build amd64 && !purego

package random

// normalQuads fills the first 4*quads elements of dst; what lies behind them is not defined.
func normalQuads(dst *[BlockSize]float32, quads int, quad uint32, a Address) {
	normalQuadsPortable(dst[:4*quads], quad, a)
}
