package langevin_test

import (
	"math"
	"testing"
)

// markov is a chain on the line, theta' ~ N(theta + drift(theta), variance(theta)). Its grid is so
// wide and fine that sums over its points equal integrals within far less than the tests resolve.
type markov struct {
	drift, variance func(theta float64) float64
	lo, hi          float64
	points          int
}

// averages integrates functions over the chain's stationary distribution, which it finds by
// applying the kernel until nothing changes.
func (m markov) averages(t *testing.T, functions ...func(theta float64) float64) []float64 {
	t.Helper()
	width := (m.hi - m.lo) / float64(m.points-1)
	at := func(i int) float64 { return m.lo + float64(i)*width }
	kernel := make([][]float64, m.points) // kernel[from][to]
	for i := range kernel {
		row, sum := make([]float64, m.points), 0.0
		center, variance := at(i)+m.drift(at(i)), m.variance(at(i))
		for j := range row {
			d := at(j) - center
			row[j] = math.Exp(-d * d / (2 * variance))
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
		}
		kernel[i] = row
	}
	density := make([]float64, m.points)
	for i := range density {
		density[i] = 1 / float64(m.points)
	}
	for change := 1.0; change > 1e-10; {
		next := make([]float64, m.points)
		for i, row := range kernel {
			for j, p := range row {
				next[j] += density[i] * p
			}
		}
		change = 0
		for j := range next {
			change += math.Abs(next[j] - density[j])
		}
		density = next
	}
	if edge := density[0] + density[m.points-1]; edge > 1e-7 {
		t.Fatalf("the grid from %v to %v is too narrow: %v at its ends", m.lo, m.hi, edge)
	}
	averages := make([]float64, len(functions))
	for f, function := range functions {
		for i, p := range density {
			averages[f] += p * function(at(i))
		}
	}
	return averages
}

// TestMarkovKernel compares the quadrature with the exact autoregression.
func TestMarkovKernel(t *testing.T) {
	const step, k, temperature = 0.3, 1.5, 0.7
	m := markov{
		drift:    func(x float64) float64 { return -step * k * x },
		variance: func(float64) float64 { return 2 * step * temperature },
		lo:       -6, hi: 6, points: 150,
	}
	got := m.averages(t, identity, square)
	variance := euler(step, k, temperature, 0).at(0)
	if math.Abs(got[0]) > 1e-8 || math.Abs(got[1]/variance-1) > 1e-7 {
		t.Errorf("mean %v and variance %v, want 0 and %v", got[0], got[1], variance)
	}
}

func identity(x float64) float64 { return x }
func square(x float64) float64   { return x * x }
func cube(x float64) float64     { return x * x * x }
