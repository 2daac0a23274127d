package tensor

// Transposed returns the transpose of a matrix [rows columns], as [columns rows].
func Transposed[T any](matrix []T, rows, columns int) []T {
	out := make([]T, len(matrix))
	for i := range rows {
		for j := range columns {
			out[j*rows+i] = matrix[i*columns+j]
		}
	}
	return out
}
