package main

import (
	"math"

	"github.com/pollen-ml/pollen/tensor/random"
)

// The model: P(class 1) = sigmoid(theta_0 + theta_1 x + theta_2 y), theta ~ N(0, 3^2).
const (
	size = 30
	std  = 3
)

// observations returns features [size 3], with the first one 1, and classes. The first half is of
// class 0, around (-1, -0.5), the rest of class 1, around (1, 0.5).
func observations() (features, classes []float64) {
	noise := make([]float64, 2*size)
	random.Normals(noise, 0, random.Address{Seed: 1})
	for i := range size {
		class := float64(2 * i / size)
		features = append(features, 1, 2*class-1+noise[2*i], class-0.5+noise[2*i+1])
		classes = append(classes, class)
	}
	return features, classes
}

func sigmoid(z float64) float64 { return 1 / (1 + math.Exp(-z)) }

// average returns the probability of class 1 at (x, y), averaged over weighted draws of theta.
func average(draws [][3]float64, weights []float64, x, y float64) float64 {
	sum, mass := 0.0, 0.0
	for i, theta := range draws {
		sum += weights[i] * sigmoid(theta[0]+theta[1]*x+theta[2]*y)
		mass += weights[i]
	}
	return sum / mass
}

// quadrature returns a grid over theta with the unnormalised posterior density as weights. Points
// with negligible weights are left out.
func quadrature() (grid [][3]float64, weights []float64) {
	const n = 60
	features, classes := observations()
	for i := range n {
		for j := range n {
			for k := range n {
				at := func(low, high float64, i int) float64 { return low + (high-low)*(float64(i)+0.5)/n }
				theta := [3]float64{at(-5, 5, i), at(-2, 10, j), at(-4, 8, k)}
				logDensity := 0.0
				for _, t := range theta {
					logDensity -= t * t / (2 * std * std)
				}
				for i, class := range classes {
					z := theta[0]*features[3*i] + theta[1]*features[3*i+1] + theta[2]*features[3*i+2]
					logDensity -= math.Log1p(math.Exp((1 - 2*class) * z))
				}
				if logDensity > -25 {
					grid, weights = append(grid, theta), append(weights, math.Exp(logDensity))
				}
			}
		}
	}
	return grid, weights
}
