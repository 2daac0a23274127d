package main

import (
	"github.com/pollen-ml/pollen/tensor/random"
)

const rows, columns = 200, 3

// coefficients are the slopes and the intercept that made the targets, and names theirs.
var (
	coefficients = []float64{1, -2, 0.5, 0.3}
	names        = []string{"slope 1", "slope 2", "slope 3", "intercept"}
)

// observations returns features [rows columns] from N(0, 1) and targets with noise of standard
// deviation 0.3. Every twentieth target is too large by 8.
func observations() (features, targets []float64) {
	features, targets = make([]float64, rows*columns), make([]float64, rows)
	random.Normals(features, 0, random.Address{Seed: 1})
	random.Normals(targets, 0, random.Address{Seed: 2})
	for i := range targets {
		targets[i] = coefficients[columns] + 0.3*targets[i]
		for j := range columns {
			targets[i] += coefficients[j] * features[i*columns+j]
		}
		if i%20 == 0 {
			targets[i] += 8
		}
	}
	return features, targets
}
