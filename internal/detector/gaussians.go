package detector

import (
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/tensor/kernel"
)

// shrinkage is the fraction of the mean variance that is added to the diagonal of a covariance.
const shrinkage = 1e-3

// gaussians are normal distributions with one covariance and a mean for each class.
type gaussians struct {
	// Means are the whitened means of the classes, [classes d].
	Means vector `json:"means"`
	// Whitening is the inverse of the Cholesky factor of the covariance, [d d].
	Whitening vector `json:"whitening"`

	squares []float32 // of the rows of Means
}

// fitGaussians fits gaussians to rows [n d]. labels has the class of each row. Classes without
// rows have no mean.
func fitGaussians(rows []float32, d int, labels []int32) (*gaussians, error) {
	means, of := classMeans(rows, d, labels)
	covariance, trace := mat.NewSymDense(d, nil), 0.0
	for i, at := range of {
		deviation := vectorOf(rows[i*d : (i+1)*d])
		deviation.SubVec(deviation, means[at])
		covariance.SymRankOne(covariance, 1/float64(len(of)), deviation)
	}
	for j := range d {
		trace += covariance.At(j, j)
	}
	for j := range d {
		covariance.SetSym(j, j, covariance.At(j, j)+max(shrinkage*trace/float64(d), 1e-9))
	}
	var cholesky mat.Cholesky
	if !cholesky.Factorize(covariance) {
		return nil, &UnfitError{"the covariance of the features has no Cholesky factor"}
	}
	var lower, inverse mat.TriDense
	cholesky.LTo(&lower)
	if err := inverse.InverseTri(&lower); err != nil && !errors.As(err, new(mat.Condition)) {
		return nil, errors.Wrap(err, "detector")
	}
	g := &gaussians{Means: make(vector, 0, len(means)*d), Whitening: make(vector, d*d)}
	for j := range d {
		for k := range j + 1 {
			g.Whitening[j*d+k] = float32(inverse.At(j, k))
		}
	}
	for _, m := range means {
		white := mat.NewVecDense(d, nil)
		white.MulVec(&inverse, m)
		for j := range d {
			g.Means = append(g.Means, float32(white.AtVec(j)))
		}
	}
	g.prepare(d)
	return g, nil
}

// classMeans returns the means of rows [n d] by class, and the position of each row's class among
// them.
func classMeans(rows []float32, d int, labels []int32) (means []*mat.VecDense, of []int) {
	var sizes []float64
	place := map[int32]int{} // of a class among the means
	of = make([]int, len(labels))
	for i, label := range labels {
		at, known := place[label]
		if !known {
			at = len(means)
			place[label] = at
			means, sizes = append(means, mat.NewVecDense(d, nil)), append(sizes, 0)
		}
		of[i] = at
		sizes[at]++
	}
	for i, at := range of {
		means[at].AddScaledVec(means[at], 1/sizes[at], vectorOf(rows[i*d:(i+1)*d]))
	}
	return means, of
}

func vectorOf(row []float32) *mat.VecDense {
	v := mat.NewVecDense(len(row), nil)
	for j, x := range row {
		v.SetVec(j, float64(x))
	}
	return v
}

// prepare computes the field that is not stored.
func (g *gaussians) prepare(d int) {
	g.squares = g.squares[:0]
	for mean := range slices.Chunk(g.Means, d) {
		g.squares = append(g.squares, square(mean))
	}
}

// check returns an error for gaussians that fitGaussians cannot have made for d features.
func (g *gaussians) check(d int) error {
	if len(g.Means) == 0 || len(g.Means)%d != 0 || len(g.Whitening) != d*d {
		return errors.Errorf("detector: %d projected features must have rows of %d means and a %dx%d matrix, got %d and %d numbers",
			d, d, d, d, len(g.Means), len(g.Whitening))
	}
	return nil
}

// nearest returns the squared Mahalanobis distance of each row from the nearest mean.
func (g *gaussians) nearest(rows []float32) []float64 {
	classes := len(g.squares)
	d := len(g.Means) / classes
	n := len(rows) / d
	distances := make([]float64, n)
	product(kernel.Gemm{M: n, N: d, K: d, TransposeB: true}, rows, g.Whitening, func(white []float32) {
		product(kernel.Gemm{M: n, N: classes, K: d, TransposeB: true}, white, g.Means, func(inner []float32) {
			for i := range distances {
				least := float32(math.MaxFloat32)
				for class, v := range inner[i*classes : (i+1)*classes] {
					least = min(least, g.squares[class]-2*v)
				}
				distances[i] = max(0, float64(square(white[i*d:(i+1)*d]))+float64(least))
			}
		})
	})
	return distances
}
