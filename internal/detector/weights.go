package detector

import "math"

// NeighbourWeights are the numbers with which statistics are compared, for programs that compute
// the distances of a space elsewhere: the mean distance of z = clip((x - Center)/Scale,
// -MaxStandard, MaxStandard) from its Neighbours nearest rows of Bank.
type NeighbourWeights struct {
	Features, Rows int
	Center, Scale  []float32 // [Features]
	Bank           []float32 // [Rows Features]
	Neighbours     int
	MaxStandard    float64
}

// Weights returns the numbers of a prepared space.
func (s *space) Weights() NeighbourWeights {
	rows := len(s.squares)
	return NeighbourWeights{
		Features: s.features(), Rows: rows, Center: s.Center, Scale: s.Scale,
		Bank: s.Bank, Neighbours: min(neighbours, rows), MaxStandard: maxStandard,
	}
}

// SubspaceWeights are the numbers that describe features, for programs that compute the Mahalanobis
// distances of a subspace elsewhere. With r = sign(x) sqrt(min(|x/Scale|, MaxRatio)) and u =
// r/sqrt(max(r'r, MinSquare)) - Center, the coordinates are z = Axes u, and the squared distance is
// the sum of z^2/Variances plus (u'u - z'z)/Residual.
type SubspaceWeights struct {
	Features, Dimensions int
	Scale, Center        []float32 // [Features]
	Axes                 []float32 // [Dimensions Features]
	Variances            []float32 // [Dimensions]
	Residual             float32
	MaxRatio, MinSquare  float64
}

// Weights returns the numbers of a subspace.
func (s *subspace) Weights() SubspaceWeights {
	return SubspaceWeights{
		Features: s.features(), Dimensions: s.dimensions(), Scale: s.Scale, Center: s.Center, Axes: s.Axes,
		Variances: s.Variances, Residual: s.Residual, MaxRatio: maxRatio, MinSquare: minSquare,
	}
}

// Width returns the difference of scores that the scale maps to 1.
func (s scale) Width() float64 { return max(s.Upper-s.Median, 1e-3*math.Abs(s.Median), 1e-9) }

// MaxOctaves is the maximum number of octaves of the spectrum among the statistics of an image.
const MaxOctaves = maxOctaves
