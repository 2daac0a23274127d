package langevin

// Gradient makes of the mean loss's gradient dw that of U/N, by parameters w, and returns the sum
// of w g: for samplers of other packages.
func Gradient[T float32 | float64](p Prior, dataSize int, g, w, dw []T) (virial float64) {
	return priorTermOf[T](p, dataSize).fill(g, w, dw)
}
