package detector

import (
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/tensor/kernel"
)

// The constants of a subspace.
const (
	maxAxes     = 64      // principal axes
	minRMS      = 0.01    // of a feature, as a fraction of the mean over the features
	maxRatio    = 1e6     // of a feature to its root mean square, so that no square overflows
	minResidual = 0.1     // variance beyond the axes, as a fraction of the mean variance
	maxFeatures = 1 << 18 // whose axes take 64 MiB
)

// subspace describes feature vectors by their direction, and directions by principal axes.
//
// A feature is divided by its root mean square on training images, so that all layers count alike,
// and its root is taken, so that a few channels that respond strongly do not outweigh the others.
// The vector is then scaled to unit length: how strongly a network responds to an image depends on
// the contrast, and which channels respond depends on what is in it. The directions of training
// images have principal axes; perpendicular to these, the variance is taken to be the same.
type subspace struct {
	// Scale is the root mean square of each feature.
	Scale vector `json:"scale"`
	// Center is the mean of the unit vectors, Axes the principal axes of their deviations from it,
	// [k features], and Variances the variance along each axis.
	Center    vector `json:"center"`
	Axes      vector `json:"axes"`
	Variances vector `json:"variances"`
	// Residual is the variance along any direction that is perpendicular to the axes.
	Residual float32 `json:"residual"`
}

// features returns the number of features, dimensions the number of axes.
func (s *subspace) features() int   { return len(s.Center) }
func (s *subspace) dimensions() int { return len(s.Variances) }

// fitSubspace fits a subspace to the features of training images, [n features].
func fitSubspace(rows []float32, features int) (*subspace, error) {
	if features > maxFeatures {
		return nil, &UnfitError{fmt.Sprintf("the network must have at most %d features, got %d", maxFeatures, features)}
	}
	n := len(rows) / features
	s := &subspace{Scale: make(vector, features), Center: make(vector, features)}
	total := 0.0
	for j := range features {
		sum := 0.0
		for i := range n {
			sum += float64(rows[i*features+j]) * float64(rows[i*features+j])
		}
		rms := math.Sqrt(sum / float64(n))
		s.Scale[j] = float32(rms)
		total += rms
	}
	if !(total < math.MaxFloat32) {
		return nil, &UnfitError{"the features of the training images are not finite"}
	}
	// A feature that is 0 on the training images, because its ReLU is never positive, gets a small
	// scale, so that other values count as far.
	for j := range s.Scale {
		s.Scale[j] = max(s.Scale[j], float32(minRMS*total/float64(features)), 1e-6)
	}
	deviations := s.units(rows)
	for j := range features {
		mean := 0.0
		for i := range n {
			mean += float64(deviations[i*features+j]) / float64(n)
		}
		s.Center[j] = float32(mean)
		for i := range n {
			deviations[i*features+j] -= s.Center[j]
		}
	}
	return s, s.fitAxes(deviations)
}

// fitAxes finds the principal axes of deviations, [n features].
func (s *subspace) fitAxes(deviations []float32) error {
	features := s.features()
	n := len(deviations) / features
	// The axes are the eigenvectors of the covariance of the features. If there are more features
	// than rows, they are found from the eigenvectors of the rows' inner products, which have the
	// same eigenvalues.
	few := n < features
	g := kernel.Gemm{M: features, N: features, K: n, TransposeA: true}
	if few {
		g = kernel.Gemm{M: n, N: n, K: features, TransposeB: true}
	}
	products := mat.NewSymDense(g.M, nil)
	product(g, deviations, deviations, func(c []float32) {
		for i := range g.M {
			for j := range i + 1 {
				products.SetSym(i, j, float64(c[i*g.M+j])/float64(n))
			}
		}
	})
	var eigen mat.EigenSym
	if !eigen.Factorize(products, true) {
		return &UnfitError{"the covariance of the features has no eigenvalues"}
	}
	values := eigen.Values(nil) // ascending
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	rest := 0.0
	for _, v := range values {
		rest += max(v, 0)
	}
	floor := max(minResidual*rest/float64(features), 1e-12)
	k := min(maxAxes, len(values))
	columns := make([]float32, k*g.M) // the eigenvectors of the largest eigenvalues, [k M]
	for place := range k {
		at := len(values) - 1 - place
		variance := max(values[at], 0)
		rest -= variance
		s.Variances = append(s.Variances, float32(variance))
		scale := 1.0
		if few {
			// A deviation is perpendicular to an axis of no variance.
			scale = 0
			if variance > floor*1e-6 {
				scale = 1 / math.Sqrt(float64(n)*variance)
			}
		}
		for i := range g.M {
			columns[place*g.M+i] = float32(scale * vectors.At(i, at))
		}
	}
	s.Axes = columns
	if few {
		product(kernel.Gemm{M: k, N: features, K: n}, columns, deviations, func(c []float32) { s.Axes = slices.Clone(c) })
	}
	if features > k {
		floor = max(floor, rest/float64(features-k))
	}
	s.Residual = float32(floor)
	for i := range s.Variances {
		s.Variances[i] = max(s.Variances[i], s.Residual)
	}
	return nil
}

// check returns an error for a subspace that fitSubspace cannot have made.
func (s *subspace) check() error {
	f, d := s.features(), s.dimensions()
	if f < 1 || f > maxFeatures || d < 1 || d > maxAxes || len(s.Scale) != f || len(s.Axes) != d*f {
		return errors.Errorf("detector: %d features and %d axes must have %d scales and a %dx%d matrix, got %d and %d numbers",
			f, d, f, d, f, len(s.Scale), len(s.Axes))
	}
	if least := min(slices.Min(s.Scale), slices.Min(s.Variances), s.Residual); !(least > 0) {
		return errors.Errorf("detector: scales and variances must be positive, got %v", least)
	}
	return nil
}

// units returns the unit vectors of features, [n features].
func (s *subspace) units(rows []float32) []float32 {
	units := make([]float32, len(rows))
	for to := range slices.Chunk(units, s.features()) {
		from := rows[:len(to)]
		rows = rows[len(to):]
		sum := float32(0)
		for j, v := range from {
			ratio := v / s.Scale[j]
			root := float32(math.Sqrt(float64(min(max(ratio, -ratio), maxRatio))))
			if ratio < 0 {
				root = -root
			}
			to[j] = root
			sum += root * root
		}
		length := float32(math.Sqrt(max(float64(sum), minSquare)))
		for j := range to {
			to[j] /= length
		}
	}
	return units
}

// minSquare is the minimum squared length by whose root a vector is divided, so that a vector of
// zeros stays zero.
const minSquare = 1e-12

// project returns the coordinates of features [n features] along the axes, [n k], and the squared
// lengths of their components perpendicular to the axes, [n].
func (s *subspace) project(rows []float32) (projected []float32, rest []float32) {
	f, d := s.features(), s.dimensions()
	n := len(rows) / f
	deviations := s.units(rows)
	for row := range slices.Chunk(deviations, f) {
		for j, v := range s.Center {
			row[j] -= v
		}
		rest = append(rest, square(row))
	}
	product(kernel.Gemm{M: n, N: d, K: f, TransposeB: true}, deviations, s.Axes, func(c []float32) { projected = slices.Clone(c) })
	for i := range rest {
		rest[i] = max(0, rest[i]-square(projected[i*d:(i+1)*d]))
	}
	return projected, rest
}

// mahalanobis returns the Mahalanobis distance of projected features from all training images.
// Source: Tipping and Bishop, Probabilistic principal component analysis (1999).
func (s *subspace) mahalanobis(projected, rest []float32) []float64 {
	d := s.dimensions()
	distances := make([]float64, len(rest))
	for i, r := range rest {
		sum := r / s.Residual
		for j, v := range projected[i*d : (i+1)*d] {
			sum += v * v / s.Variances[j]
		}
		distances[i] = math.Sqrt(float64(sum))
	}
	return distances
}
