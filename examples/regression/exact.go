package main

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The model: y_i = theta_0 + theta_1 x_i + N(0, noise^2), theta ~ N(0, 1).
const (
	size  = 50
	noise = 0.5
)

// observations returns features [size 2], with the first one 1, and targets on the line 0.5 + 0.8 x
// with noise.
func observations() (features, targets []float64) {
	targets = make([]float64, size)
	random.Normals(targets, 0, random.Address{Seed: 1})
	for i := range targets {
		x := 2 * float64(i) / (size - 1)
		features = append(features, 1, x)
		targets[i] = 0.5 + 0.8*x + noise*targets[i]
	}
	return features, targets
}

// moments are the moments of a distribution of theta.
type moments struct{ mean0, mean1, deviation0, deviation1, correlation float64 }

// exact returns the moments of the posterior N(m, A^-1), A = X'X/noise^2 + 1, m = A^-1 X'y/noise^2.
func exact() moments {
	features, targets := observations()
	a00, a01, a11 := 1.0, 0.0, 1.0
	var r0, r1 float64
	for i, y := range targets {
		x0, x1 := features[2*i]/noise, features[2*i+1]/noise
		a00, a01, a11 = a00+x0*x0, a01+x0*x1, a11+x1*x1
		r0, r1 = r0+x0*y/noise, r1+x1*y/noise
	}
	determinant := a00*a11 - a01*a01
	return moments{
		(a11*r0 - a01*r1) / determinant, (a00*r1 - a01*r0) / determinant,
		math.Sqrt(a11 / determinant), math.Sqrt(a00 / determinant), -a01 / math.Sqrt(a00*a11),
	}
}

// density returns the normal density on a grid, divided by its maximum, with lines around half, 90
// % and 99 % of the probability.
func (m moments) density() report.Levels {
	levels := report.Levels{Name: "exact: 50 %, 90 %, 99 %", At: []float64{0.01, 0.1, 0.5}}
	for i := range 101 {
		z := 4 * (float64(i)/50 - 1)
		levels.X, levels.Y = append(levels.X, m.mean0+z*m.deviation0), append(levels.Y, m.mean1+z*m.deviation1)
	}
	for _, y := range levels.Y {
		for _, x := range levels.X {
			z0, z1 := (x-m.mean0)/m.deviation0, (y-m.mean1)/m.deviation1
			square := (z0*z0 - 2*m.correlation*z0*z1 + z1*z1) / (1 - m.correlation*m.correlation)
			levels.Values = append(levels.Values, math.Exp(-square/2))
		}
	}
	return levels
}

func (t traces) moments() moments {
	theta0, theta1 := slices.Concat(t[0]...), slices.Concat(t[1]...)
	n := float64(len(theta0))
	var m moments
	for i := range theta0 {
		m.mean0, m.mean1 = m.mean0+theta0[i]/n, m.mean1+theta1[i]/n
	}
	var c00, c01, c11 float64
	for i := range theta0 {
		d0, d1 := theta0[i]-m.mean0, theta1[i]-m.mean1
		c00, c01, c11 = c00+d0*d0/n, c01+d0*d1/n, c11+d1*d1/n
	}
	m.deviation0, m.deviation1, m.correlation = math.Sqrt(c00), math.Sqrt(c11), c01/math.Sqrt(c00*c11)
	return m
}
