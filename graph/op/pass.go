package op

import "math"

// passAbove32 is dx = dout where y > bound, else 0. The bits are selected, because a branch on activations is mispredicted every other
// time.
func passAbove32(dx, dout, y []float32, bound float32) {
	dx, dout = dx[:len(y)], dout[:len(y)]
	for i, v := range y {
		bits := math.Float32bits(dout[i])
		if !(v > bound) {
			bits = 0
		}
		dx[i] = math.Float32frombits(bits)
	}
}

// passAbove64 is passAbove32 for float64.
func passAbove64(dx, dout, y []float64, bound float64) {
	dx, dout = dx[:len(y)], dout[:len(y)]
	for i, v := range y {
		bits := math.Float64bits(dout[i])
		if !(v > bound) {
			bits = 0
		}
		dx[i] = math.Float64frombits(bits)
	}
}
