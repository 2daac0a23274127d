package measure

import (
	"context"
	"math"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// determination is the field (P + tau + G)^-1 gL of the temperature by determination.
//
// G = R R' approximates the curvature of the likelihood, with a column of R for each of rank groups
// of images: the gradient of their loss for labels drawn from the network's predictions. The
// covariance of such gradients is the Fisher information. The labels are fixed for all samples. The
// field is therefore a function of theta, and E[F.gU] = T E[div F] holds exactly, however rough G
// is.
//
// A G of few columns has all its curvature in few directions. Steeper directions that it misses
// would count by lambda/prior, not at most once. tau, the smallest curvature in R, prevents that:
// directions below it count less than s = lambda/(lambda + prior).
type determination struct {
	precisions []float64 // P, by parameter
	starts     []int     // of each parameter among all weights, and their number
	weights    int
	rank       int
	labels     []int32
	tau        float64
	steepness  float64 // mean of the curvatures in R, each weighted by its value

	columns []float32 // R'/scale, a row for each column of R
	scale   float64
}

// maxDetermined bounds the elements of R, 32 MiB. R has minRank columns at least: networks with too
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
	d.starts = append(d.starts, d.weights)
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
	if d.columns == nil {
		d.columns = make([]float32, d.rank*d.weights)
		d.scale = float64(f.batch) * math.Sqrt(f.examples/float64(len(f.labels)))
	}
	step, steps, last := 0, len(f.labels)/f.batch, -1
	err := f.pass(ctx, d.labels, func() error {
		c := step * d.rank / steps
		column, first := d.column(c), c != last
		step, last = step+1, c
		if first {
			for p, parameter := range sample.Parameters {
				if err := readGradient(f.loss, parameter, column[d.starts[p]:d.starts[p+1]]); err != nil {
					return err
				}
			}
			return nil
		}
		return readGradients(f.loss, sample, &f.buffer, func(p int, g []float32) {
			for i, sums := 0, column[d.starts[p]:][:len(g)]; i < len(sums); i++ {
				sums[i] += g[i]
			}
		})
	})
	if err != nil {
		return nil, err
	}
	if d.tau == 0 {
		if d.tau, d.steepness, err = d.curvatures(); err != nil {
			return nil, err
		}
	}
	return d.solve(here.gradient)
}

// column returns a column of R.
func (d *determination) column(c int) []float32 { return d.columns[c*d.weights:][:d.weights] }

// innerProducts returns R'VR, where V is diagonal and has a weight for each parameter.
func (d *determination) innerProducts(weight func(p int) float64) *mat.SymDense {
	products := mat.NewSymDense(d.rank, nil)
	sums, part := products.RawSymmetric().Data, make([]float64, d.rank*d.rank)
	scratch := make([]float64, kernel.GramScratch(d.rank))
	for p, start := range d.starts[:len(d.starts)-1] {
		kernel.WideGram(part, d.columns[start:], d.rank, d.starts[p+1]-start, d.weights, scratch)
		floats.AddScaled(sums, d.scale*d.scale*weight(p), part) // below the diagonal both are 0
	}
	return products
}

// curvatures returns the smallest eigenvalue of R'R that is not 0, but at least a thousandth of
// the mean of all, zeros included, and the mean weighted by the eigenvalues themselves.
func (d *determination) curvatures() (least, steepness float64, err error) {
	squares := d.innerProducts(func(int) float64 { return 1 })
	var eigen mat.EigenSym
	if !eigen.Factorize(squares, false) {
		return 0, 0, errors.New("measure: the curvature of the likelihood is not finite")
	}
	const minFraction = 1e-3
	values, trace := eigen.Values(nil), mat.Trace(squares)
	least = max(values[0], minFraction*trace/float64(d.weights), math.SmallestNonzeroFloat32)
	return least, floats.Dot(values, values) / max(trace, math.SmallestNonzeroFloat32), nil
}

// solve returns (W + R R')^-1 g with W = P + tau, as W^-1 (g - R (I + R' W^-1 R)^-1 R' W^-1 g).
func (d *determination) solve(gradient [][]float64) ([][]float64, error) {
	inverse := func(p int) float64 { return 1 / (d.precisions[p] + d.tau) }
	inner := d.innerProducts(inverse)
	for c := range d.rank {
		inner.SetSym(c, c, inner.At(c, c)+1)
	}
	var factor mat.Cholesky
	if !factor.Factorize(inner) {
		return nil, errors.New("measure: the curvature of the likelihood is not finite")
	}
	field, along := make([][]float64, len(gradient)), mat.NewVecDense(d.rank, nil)
	for p, values := range gradient {
		field[p] = make([]float64, len(values))
		floats.AddScaled(field[p], inverse(p), values)
		for c := range d.rank {
			along.SetVec(c, along.AtVec(c)+d.scale*dot(d.column(c)[d.starts[p]:], field[p]))
		}
	}
	if err := factor.SolveVecTo(along, along); err != nil {
		return nil, errors.Wrap(err, "measure: the curvature of the likelihood")
	}
	for p := range gradient {
		for c := range d.rank {
			addScaled(field[p], -inverse(p)*d.scale*along.AtVec(c), d.column(c)[d.starts[p]:])
		}
	}
	return field, nil
}

// dot returns the inner product of y and the first len(y) elements of x. It sums in float64.
func dot(x []float32, y []float64) float64 {
	const lanes = 4
	var s0, s1, s2, s3 float64 // to add them in turn would take as long as four additions
	x = x[:len(y)]
	for ; len(x) >= lanes && len(y) >= lanes; x, y = x[lanes:], y[lanes:] {
		s0 += float64(x[0]) * y[0]
		s1 += float64(x[1]) * y[1]
		s2 += float64(x[2]) * y[2]
		s3 += float64(x[3]) * y[3]
	}
	for i, v := range y {
		s0 += float64(x[i]) * v
	}
	return s0 + s1 + (s2 + s3)
}
