package measure

import (
	"context"
	"math"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// determination is the field (P + tau + G)^-1 gL of the temperature by determination.
//
// G = R R' approximates the curvature of the likelihood, with a column of R for each of rank groups
// of images: the gradient of their loss for labels drawn from the network's predictions, of which
// the Fisher information is the covariance. The labels are fixed for all samples, so that the field
// is a function of theta, for which E[F.gU] = T E[div F] holds exactly, however rough G is.
//
// A G of few columns has all its curvature in few directions. Steeper directions that it misses
// would count by lambda/prior, not at most once. tau, the smallest curvature in R, prevents that:
// directions below it count less than s = lambda/(lambda + prior).
type determination struct {
	precisions []float64 // P, by parameter
	starts     []int     // of each parameter among all weights
	weights    int
	rank       int
	labels     []int32
	tau        float64
	steepness  float64 // mean of the curvatures in R, each weighted by its value
}

// maxDetermined bounds the elements of R, 64 MiB. R has minRank columns at least: networks with too
// many weights for that are not measured by determination.
const (
	maxDetermined = 1 << 23
	minRank       = 8
)

// newDetermination returns the field for a number of minibatches, which are put into groups; nil
// for a network with too many weights.
func newDetermination(s Subject, parameters []graph.Tensor, steps int) (*determination, error) {
	d := &determination{}
	var names []string
	var shapes []tensor.Shape
	for _, p := range parameters {
		names, shapes = append(names, p.Name), append(shapes, p.Shape)
		d.starts = append(d.starts, d.weights)
		d.weights += p.Shape.Elements()
	}
	if d.rank = rankOf(d.weights, steps); d.rank == 0 {
		return nil, nil
	}
	priors, err := s.Posterior.Priors(names, shapes)
	if err != nil {
		return nil, err
	}
	for _, p := range priors {
		d.precisions = append(d.precisions, precision(p))
	}
	return d, nil
}

// rankOf returns the number of columns of R, or 0 if there are too many weights.
func rankOf(weights, steps int) int {
	if maxDetermined/weights < minRank {
		return 0
	}
	return min(steps, maxDetermined/weights)
}

// precision returns the inverse of a prior's variance; for a Student-t distribution, which may have
// none, the curvature of its logarithm at 0.
func precision(p langevin.Prior) float64 {
	square := p.Scale * p.Scale
	switch p.Kind {
	case langevin.FlatPrior:
		return 0
	case langevin.LaplacePrior:
		return 1 / (2 * square)
	case langevin.StudentTPrior:
		return (p.DoF + 1) / (p.DoF * square)
	case langevin.ScaleMixturePrior:
		return 1 / (p.Weight*square + (1-p.Weight)*p.Narrow*p.Narrow)
	default:
		return 1 / square
	}
}

// determinedAt returns the field at a sample.
func (f *field) determinedAt(ctx context.Context, sample samples.Sample, here slope) ([][]float64, error) {
	d := f.determination
	if err := sample.Put(f.loss, 0); err != nil {
		return nil, err
	}
	columns := mat.NewDense(d.rank, d.weights, nil) // R'
	step, steps := 0, len(f.labels)/f.batch
	scale := float64(f.batch) * math.Sqrt(f.examples/float64(len(f.labels)))
	err := f.pass(ctx, d.labels, func() error {
		row := columns.RawRowView(step * d.rank / steps)
		step++
		return readGradients(f.loss, sample, func(p, i int, g float64) { row[d.starts[p]+i] += scale * g })
	})
	if err != nil {
		return nil, err
	}
	if d.tau == 0 {
		if d.tau, d.steepness, err = curvatures(columns); err != nil {
			return nil, err
		}
	}
	return d.solve(columns, here.gradient)
}

// innerProducts returns the products of all pairs of rows. It sums over a few hundred columns at a
// time, so that these stay in the cache: five times as fast as whole rows of 70 000 columns.
func innerProducts(rows *mat.Dense) *mat.SymDense {
	const block = 512
	all := rows.RawMatrix()
	products := mat.NewSymDense(all.Rows, nil)
	for k := 0; k < all.Cols; k += block {
		part := blas64.General{Rows: all.Rows, Cols: min(block, all.Cols-k), Stride: all.Stride, Data: all.Data[k:]}
		blas64.Syrk(blas.NoTrans, 1, part, 1, products.RawSymmetric())
	}
	return products
}

// curvatures returns the smallest eigenvalue of R R' that is not 0, but at least a thousandth of
// the mean of all, zeros included, and the mean weighted by the eigenvalues themselves.
func curvatures(columns *mat.Dense) (least, steepness float64, err error) {
	_, weights := columns.Dims()
	squares := innerProducts(columns)
	var eigen mat.EigenSym
	if !eigen.Factorize(squares, false) {
		return 0, 0, errors.New("measure: the curvature of the likelihood is not finite")
	}
	const minFraction = 1e-3
	values, trace := eigen.Values(nil), mat.Trace(squares)
	least = max(values[0], minFraction*trace/float64(weights), math.SmallestNonzeroFloat32)
	return least, floats.Dot(values, values) / max(trace, math.SmallestNonzeroFloat32), nil
}

// solve returns (W + R R')^-1 g with W = P + tau, as W^-1 g - W^-1/2 S (I + S'S)^-1 S' W^-1/2 g for
// S = W^-1/2 R. It overwrites columns, R', with S'.
func (d *determination) solve(columns *mat.Dense, gradient [][]float64) ([][]float64, error) {
	scaled := mat.NewVecDense(d.weights, nil)
	for p, values := range gradient {
		root := 1 / math.Sqrt(d.precisions[p]+d.tau)
		for i, g := range values {
			scaled.SetVec(d.starts[p]+i, root*g)
		}
		for c := range d.rank {
			row := columns.RawRowView(c)[d.starts[p]:][:len(values)]
			for i := range row {
				row[i] *= root
			}
		}
	}
	inner := innerProducts(columns)
	for c := range d.rank {
		inner.SetSym(c, c, inner.At(c, c)+1)
	}
	var factor mat.Cholesky
	if !factor.Factorize(inner) {
		return nil, errors.New("measure: the curvature of the likelihood is not finite")
	}
	var along, part mat.VecDense
	along.MulVec(columns, scaled)
	if err := factor.SolveVecTo(&along, &along); err != nil {
		return nil, errors.Wrap(err, "measure: the curvature of the likelihood")
	}
	part.MulVec(columns.T(), &along)
	scaled.SubVec(scaled, &part)
	field := make([][]float64, len(gradient))
	for p, values := range gradient {
		root := 1 / math.Sqrt(d.precisions[p]+d.tau)
		field[p] = make([]float64, len(values))
		for i := range values {
			field[p][i] = root * scaled.AtVec(d.starts[p]+i)
		}
	}
	return field, nil
}
