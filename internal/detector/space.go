package detector

import (
	"math"
	"slices"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor/kernel"
)

// The constants of a space.
const (
	neighbours  = 5    // number of nearest neighbours, over which distances are averaged
	minScale    = 0.01 // of a statistic, as a fraction of the mean scale
	maxStandard = 1e6  // of a standardised statistic, so that no distance overflows
)

// UnfitError is returned for features that no detector can be fitted to.
type UnfitError struct{ cause string }

// Error implements error.
func (e *UnfitError) Error() string { return "detector: " + e.cause }

// space compares the statistics of images, standardised with the training images' means and
// deviations.
type space struct {
	// Center and Scale are the mean and standard deviation of each statistic.
	Center vector `json:"center"`
	Scale  vector `json:"scale"`
	// Bank has the standardised statistics of training images, [n features].
	Bank vector `json:"bank"`

	squares []float32 // of the rows of Bank
}

func (s *space) features() int { return len(s.Center) }

// fitSpace fits a space to the statistics of training images, [n features].
func fitSpace(rows []float32, features int) *space {
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
	// A statistic that is constant on the training images gets a small scale, so that other values
	// count as far.
	for j := range s.Scale {
		s.Scale[j] = max(s.Scale[j], float32(minScale*total/float64(features)), 1e-6)
	}
	s.Bank = s.standardise(rows)
	s.prepare()
	return s
}

// prepare computes the field that is not stored.
func (s *space) prepare() {
	s.squares = s.squares[:0]
	for row := range slices.Chunk(s.Bank, s.features()) {
		s.squares = append(s.squares, square(row))
	}
}

// check returns an error for a space that fitSpace cannot have made.
func (s *space) check() error {
	f := s.features()
	if f < 1 || len(s.Scale) != f || len(s.Bank) == 0 || len(s.Bank)%f != 0 {
		return errors.Errorf("detector: %d statistics must have %d scales and rows of %d standardised ones of training images, got %d and %d numbers",
			f, f, f, len(s.Scale), len(s.Bank))
	}
	if !(slices.Min(s.Scale) > 0) {
		return errors.Errorf("detector: scales must be positive, got %v", slices.Min(s.Scale))
	}
	return nil
}

// standardise standardises statistics, [n features].
func (s *space) standardise(rows []float32) []float32 {
	f := s.features()
	standard := make([]float32, len(rows))
	for i := range len(rows) / f {
		to := standard[i*f : (i+1)*f]
		for j, v := range rows[i*f : (i+1)*f] {
			to[j] = min(max((v-s.Center[j])/s.Scale[j], -maxStandard), maxStandard)
		}
	}
	return standard
}

// nearest returns the mean distance of each standardised row from its nearest neighbours in the
// bank.
func (s *space) nearest(rows []float32) []float64 {
	d, bank := s.features(), len(s.squares)
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
