package langevin

// Gradient adds the prior's part to the gradient of the mean loss: it fills g with the gradient of
// U/N at the parameters w, where dw is the gradient of the mean loss, and returns the sum of w g.
// Samplers of other packages use it in their host functions.
func Gradient[T float32 | float64](p Prior, dataSize int, g, w, dw []T) (virial float64) {
	return priorTermOf[T](p, dataSize).fill(g, w, dw)
}
