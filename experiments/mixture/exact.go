package main

import (
	"cmp"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor/random"
)

// observations returns 100 draws of N(0, 1.6^2)/2 + N(1, 1.6^2)/2, which is a little wider than the
// model's components and so separates the modes. The second argument of N is the variance. The seed
// was chosen so that the posterior resembles the published points'.
func observations() []float64 {
	values, component := make([]float64, 100), make([]float64, 100)
	random.Normals(values, 0, random.Address{Seed: 10})
	random.Uniforms(component, 0, random.Address{Seed: 10, Stream: 1})
	for i := range values {
		values[i] *= 1.6
		if component[i] > 0.5 {
			values[i]++
		}
	}
	return values
}

// exact integrates the posterior over a grid. It also returns the density there, divided by its
// maximum.
func exact(data []float64) (summary, report.Levels) {
	levels := report.Levels{Name: "exact density", At: []float64{0.02, 0.1, 0.3, 0.6, 0.9}}
	for i := range 241 {
		levels.X = append(levels.X, -1.5+4*float64(i)/240)
		levels.Y = append(levels.Y, -4.5+9*float64(i)/240)
	}
	highest := math.Inf(-1)
	for _, theta2 := range levels.Y {
		for _, theta1 := range levels.X {
			logDensity := -theta1*theta1/(2*variance1) - theta2*theta2/(2*variance2)
			for _, x := range data {
				a, b := x-theta1, x-theta1-theta2
				logDensity += math.Log(math.Exp(-a*a/4) + math.Exp(-b*b/4))
			}
			levels.Values = append(levels.Values, logDensity)
			highest = max(highest, logDensity)
		}
	}
	var mass float64
	var s summary
	for i, logDensity := range levels.Values {
		density := math.Exp(logDensity - highest)
		levels.Values[i] = density
		theta1, theta2 := levels.X[i%len(levels.X)], levels.Y[i/len(levels.X)]
		mass += density
		s.mean1 += density * theta1
		s.mean2 += density * theta2
		// Points with theta2 = 0 count half.
		s.positive += density * (1 + float64(cmp.Compare(theta2, 0))) / 2
	}
	return summary{s.mean1 / mass, s.mean2 / mass, s.positive / mass}, levels
}

// minPoints is the minimum number of points: the size of the single chains' minibatches.
const minPoints = 10

// readPoints reads a file of points, one per line. A first line that is not a number is a heading.
func readPoints(file string) ([]float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Wrap(err, "mixture: points")
	}
	var points []float64
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		x, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		switch {
		case err == nil && !math.IsNaN(x) && !math.IsInf(x, 0):
			points = append(points, x)
		case i > 0 || err == nil:
			return nil, errors.Errorf("mixture: points: %s: line %d must be a finite number, got %q", file, i+1, line)
		}
	}
	if len(points) < minPoints {
		return nil, errors.Errorf("mixture: points: %s: must have at least %d points, got %d", file, minPoints, len(points))
	}
	return points, nil
}
