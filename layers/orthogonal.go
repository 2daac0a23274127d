package layers

import (
	"cmp"
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// Orthogonal is Gain times a random matrix [O, fan-in] with orthonormal rows or, if it has more
// rows than columns, orthonormal columns, uniformly distributed among all of these. Sources: Saxe
// et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural networks
// (2014); for the uniformity, which needs a positive diagonal of R in the factorisation Q R,
// Mezzadri, How to generate random matrices from the classical compact groups (2007).
type Orthogonal struct {
	Gain float64 // 0 means 1
}

// Fill implements Initializer.
func (o Orthogonal) Fill(seed uint64, chain uint32, stream uint16, shape tensor.Shape, values []float64) {
	fillNormal(seed, chain, stream, values, 1)
	columns, _ := fans(shape)
	rows := len(values) / columns
	gain := cmp.Or(o.Gain, 1)
	if rows <= columns {
		orthonormalize(values, columns)
	} else {
		transposed := tensor.Transposed(values, rows, columns)
		orthonormalize(transposed, rows)
		copy(values, tensor.Transposed(transposed, columns, rows))
	}
	for i := range values {
		values[i] *= gain
	}
}

// orthonormalize makes the rows of a matrix orthonormal by the Gram-Schmidt process. Each row is
// projected twice, which is enough for orthogonality to working precision (Giraud, Langou and
// Rozloznik 2005).
func orthonormalize(matrix []float64, columns int) {
	for done := 0; done < len(matrix); done += columns {
		row := matrix[done : done+columns]
		for range 2 {
			for start := 0; start < done; start += columns {
				other := matrix[start : start+columns]
				along := dot(row, other)
				for i := range row {
					row[i] -= float64(along * other[i])
				}
			}
		}
		length := math.Sqrt(dot(row, row))
		for i := range row {
			row[i] /= length
		}
	}
}

// dot rounds each product before it adds it, so that the bits are the same on machines with and
// without fused multiply-add.
func dot(a, b []float64) float64 {
	total := 0.0
	for i := range a {
		total += float64(a[i] * b[i])
	}
	return total
}
