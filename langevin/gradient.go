package langevin

// Gradient puts into g the gradient of U/N by parameters w, dw being that of the mean loss, and
// returns the sum of w g: for samplers of other packages, whose Force has the prior and N.
func Gradient[T float32 | float64](p Prior, dataSize int, g, w, dw []T) (virial float64) {
	return slopeOf[T](p, dataSize).fill(g, w, dw)
}
