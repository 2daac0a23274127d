package detector

import "math"

// Weights are the numbers with which features are compared, for programs that compute the distances
// of a space elsewhere: with z = clip((x - Center)/Scale, -MaxStandard, MaxStandard) and, unless
// Directions is nil, z = z Directions, this is the mean distance of z from its Neighbours nearest
// rows of Bank.
type Weights struct {
	// Features is the number of features, Dimensions that of projected ones, and Rows that of Bank.
	Features, Dimensions, Rows int
	Center, Scale              []float32 // [Features]
	Directions                 []float32 // [Features Dimensions]
	Bank                       []float32 // [Rows Dimensions]
	Neighbours                 int
	MaxStandard                float64
}

// Weights returns the numbers of a prepared space.
func (s *space) Weights() Weights {
	rows := len(s.squares)
	return Weights{
		Features: s.features(), Dimensions: s.dimensions(), Rows: rows, Center: s.Center, Scale: s.Scale, Directions: s.directions,
		Bank: s.Bank, Neighbours: min(neighbours, rows), MaxStandard: maxStandard,
	}
}

// Width returns the difference of scores that the scale maps to 1.
func (s scale) Width() float64 { return max(s.Upper-s.Median, 1e-3*math.Abs(s.Median), 1e-9) }

// MaxOctaves is the maximum number of octaves of the spectrum among the statistics of an image.
const MaxOctaves = maxOctaves
