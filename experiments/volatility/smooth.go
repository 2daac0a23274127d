package main

import "math"

// smooth finds the walk of the highest density given the deviation std and startFreedom, by Fisher
// scoring. The information of a return about its day's value is w = 2 freedom/(freedom + 3);
// together with the walk's prior it gives the matrix
//
//	w I + D'D / deviation^2,    D the differences from day to day
//
// whose inverse is, except near the ends, the covariance of a process with the correlation memory
// from one day to the next.
func smooth(returns []float64, std float64) (walk []float64, memory float64) {
	const (
		information = 2 * startFreedom / (startFreedom + 3.0)
		rounds      = 50
	)
	n, stiffness := len(returns), 1/(std*std)
	level := 0.0
	for _, r := range returns {
		level += r * r / float64(n)
	}
	walk = make([]float64, n)
	for i := range walk {
		walk[i] = math.Log(level) / 2
	}
	slope, diagonal := make([]float64, n), make([]float64, n)
	for range rounds {
		for i, s := range walk {
			z := returns[i] * math.Exp(-s)
			slope[i] = (startFreedom+1)*z*z/(startFreedom+z*z) - 1
			diagonal[i] = information
			for _, j := range []int{i - 1, i + 1} {
				if j >= 0 && j < n {
					slope[i] -= stiffness * (s - walk[j])
					diagonal[i] += stiffness
				}
			}
		}
		// Gaussian elimination of a symmetric tridiagonal matrix with -stiffness off the diagonal.
		for i := 1; i < n; i++ {
			factor := stiffness / diagonal[i-1]
			diagonal[i] -= factor * stiffness
			slope[i] += factor * slope[i-1]
		}
		for i := n - 1; i >= 0; i-- {
			if i < n-1 {
				slope[i] += stiffness * slope[i+1]
			}
			slope[i] /= diagonal[i]
			walk[i] += slope[i]
		}
	}
	// memory + 1/memory = 2 + information/stiffness
	half := information / stiffness / 2
	return walk, 1 + half - math.Sqrt(half*(2+half))
}
