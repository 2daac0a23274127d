package detector

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The constants of a space.
const (
	maxDimensions = 64   // of projected features
	neighbours    = 5    // averaged over
	minScale      = 0.01 // of a feature, as a fraction of the mean scale
	maxStandard   = 1e6  // of a standardised feature, so that no distance overflows
	projection    = 47   // seed of the random projection

	maxFeatures = 1 << 18 // whose projection takes 64 MiB
)

// UnfitError is returned for features that no detector can be fitted to.
type UnfitError struct{ cause string }

// Error implements error.
func (e *UnfitError) Error() string { return "detector: " + e.cause }

// space is where feature vectors of one kind are compared. They are standardised by the training
// images and, if they are long, projected to maxDimensions random directions, which approximately
// preserves distances (Johnson and Lindenstrauss 1984).
type space struct {
	// Center and Scale are the mean and standard deviation of each feature.
	Center vector `json:"center"`
	Scale  vector `json:"scale"`
	// Bank has the projected features of training images, [n d].
	Bank vector `json:"bank"`

	directions []float32 // [features d]; nil if features are not projected
	squares    []float32 // of the rows of Bank
}

// features returns the number of features, dimensions that of projected ones.
func (s *space) features() int   { return len(s.Center) }
func (s *space) dimensions() int { return min(len(s.Center), maxDimensions) }

// fitSpace fits a space to the features of training images, [n features].
func fitSpace(rows []float32, features int) (*space, error) {
	if features > maxFeatures {
		return nil, &UnfitError{fmt.Sprintf("the network must have at most %d features, got %d", maxFeatures, features)}
	}
	n := len(rows) / features
	s := &space{Center: make(vector, features), Scale: make(vector, features)}
	total := 0.0
	for j := range features {
		mean, sum := 0.0, 0.0
		for i := range n {
			v := float64(rows[i*features+j])
			delta := v - mean
			mean += delta / float64(i+1)
			sum += delta * (v - mean)
		}
		std := math.Sqrt(sum / float64(n))
		s.Center[j], s.Scale[j] = float32(mean), float32(std)
		total += std
	}
	if !(total < math.MaxFloat32) {
		return nil, &UnfitError{"the features of the training images are not finite"}
	}
	// A feature that is constant on the training images, such as that of a ReLU that is never
	// positive, gets a small scale, so that other values count as far.
	for j := range s.Scale {
		s.Scale[j] = max(s.Scale[j], float32(minScale*total/float64(features)), 1e-6)
	}
	s.prepare()
	s.Bank = s.project(rows)
	s.prepare()
	return s, nil
}

// prepare computes what is not stored.
func (s *space) prepare() {
	f, d := s.features(), s.dimensions()
	if d < f && s.directions == nil {
		s.directions = make([]float32, f*d)
		random.Normals(s.directions, 0, random.Address{Seed: projection})
		for i := range s.directions {
			s.directions[i] /= float32(math.Sqrt(float64(d)))
		}
	}
	s.squares = make([]float32, len(s.Bank)/d)
	for i := range s.squares {
		s.squares[i] = square(s.Bank[i*d : (i+1)*d])
	}
}

// check refuses what fitSpace cannot have made.
func (s *space) check() error {
	f, d := s.features(), s.dimensions()
	if f < 1 || f > maxFeatures || len(s.Scale) != f || len(s.Bank) == 0 || len(s.Bank)%d != 0 {
		return errors.Errorf("detector: %d features must have %d scales and rows of %d projected features of training images, got %d and %d numbers",
			f, f, d, len(s.Scale), len(s.Bank))
	}
	if !(slices.Min(s.Scale) > 0) {
		return errors.Errorf("detector: scales must be positive, got %v", slices.Min(s.Scale))
	}
	return nil
}

// project standardises and projects features, [n features] to [n d].
func (s *space) project(rows []float32) []float32 {
	f, d := s.features(), s.dimensions()
	n := len(rows) / f
	standard := make([]float32, len(rows))
	for i := range n {
		to := standard[i*f : (i+1)*f]
		for j, v := range rows[i*f : (i+1)*f] {
			to[j] = min(max((v-s.Center[j])/s.Scale[j], -maxStandard), maxStandard)
		}
	}
	if s.directions == nil {
		return standard
	}
	var projected []float32
	product(kernel.Gemm{M: n, N: d, K: f}, standard, s.directions, func(c []float32) { projected = slices.Clone(c) })
	return projected
}

// nearest returns the mean distance of each projected row from its nearest neighbours in the bank.
// Source: Sun, Ming, Zhu and Li, Out-of-distribution detection with deep nearest neighbors (2022).
func (s *space) nearest(rows []float32) []float64 {
	d, bank := s.dimensions(), len(s.squares)
	n := len(rows) / d
	distances, least := make([]float64, n), make([]float32, min(neighbours, bank))
	product(kernel.Gemm{M: n, N: bank, K: d, TransposeB: true}, rows, s.Bank, func(inner []float32) {
		for i := range n {
			for j := range least {
				least[j] = math.MaxFloat32
			}
			for j, v := range inner[i*bank : (i+1)*bank] {
				if v := s.squares[j] - 2*v; v < least[len(least)-1] {
					insert(least, v)
				}
			}
			own := square(rows[i*d : (i+1)*d])
			for _, v := range least {
				distances[i] += math.Sqrt(max(0, float64(v)+float64(own))) / float64(len(least))
			}
		}
	})
	return distances
}

// insert puts v, less than the last, into ascending numbers, and drops the last.
func insert(ascending []float32, v float32) {
	at := len(ascending) - 1
	for ; at > 0 && ascending[at-1] > v; at-- {
		ascending[at] = ascending[at-1]
	}
	ascending[at] = v
}

func square(row []float32) (sum float32) {
	for _, v := range row {
		sum += v * v
	}
	return sum
}

// products has the memory of matrix products, which would otherwise be most of the garbage of
// predictions.
var products = sync.Pool{New: func() any { return new([]float32) }}

// product passes a matrix product to use, which must not keep it. Its sizes have been checked.
func product(g kernel.Gemm, a, b []float32, use func(c []float32)) {
	plan, err := g.Plan()
	if err != nil {
		panic(err)
	}
	memory := products.Get().(*[]float32)
	defer products.Put(memory)
	size := g.M*g.N + plan.Workspace + plan.Scratch
	*memory = slices.Grow((*memory)[:0], size)[:size]
	clear(*memory)
	c, rest := (*memory)[:g.M*g.N], (*memory)[g.M*g.N:]
	operands := kernel.Operands[float32]{A: a, B: b, Out: c, Workspace: rest[:plan.Workspace], Scratch: rest[plan.Workspace:]}
	for phase, tiles := range plan.Phases {
		for tile := range tiles {
			kernel.Run(&plan, phase, tile, operands)
		}
	}
	use(c)
}
