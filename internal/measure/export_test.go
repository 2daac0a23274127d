package measure

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// What external tests need, which may train with package pollen.
var (
	PriorGradients = priorGradients
	ReadGradients  = readGradients
)

type Field struct{ *field }

func NewField(device tensor.Device, s Subject) (Field, error) {
	f, err := newField(device, s)
	return Field{f}, err
}

func (f Field) Close() { f.close() }

func (f Field) At(ctx context.Context, sample samples.Sample) (t [weightings]Terms, err error) {
	at, err := f.at(ctx, sample)
	for w, one := range at {
		t[w] = Terms{one.product, one.divergence}
	}
	return t, err
}

// Terms are those of one weighting.
type Terms struct{ Product, Divergence float64 }

// The weightings of At.
const ByCurvature, ByDetermination = byCurvature, byDetermination

// FinitePopulation is the factor of the variance of minibatches.
var FinitePopulation = finitePopulation

// Ratio is the temperature of weighted terms.
var Ratio = ratio

// DeterminedAt returns the field by determination. At must have been called before.
func (f Field) DeterminedAt(ctx context.Context, sample samples.Sample) ([][]float64, error) {
	here, err := f.slopeAt(ctx, sample)
	if err != nil {
		return nil, err
	}
	return f.determinedAt(ctx, sample, here)
}

// Solve returns (P + tau + R R')^-1 g, for the rows R' and one parameter of the prior's precision.
func Solve(rows *mat.Dense, precision, tau float64, g []float64) ([]float64, error) {
	rank, weights := rows.Dims()
	d := &determination{precisions: []float64{precision}, starts: []int{0}, weights: weights, rank: rank, tau: tau}
	solved, err := d.solve(rows, [][]float64{g})
	if err != nil {
		return nil, err
	}
	return solved[0], nil
}

func (f Field) GradientAt(ctx context.Context, sample samples.Sample) ([][]float64, error) {
	here, err := f.slopeAt(ctx, sample)
	return here.gradient, err
}

// Fisher draws labels from the network's predictions at the sample.
func (f Field) Fisher(ctx context.Context, sample samples.Sample) (float64, error) {
	here, err := f.slopeAt(ctx, sample)
	if err != nil {
		return 0, err
	}
	return f.fisher(ctx, sample, here)
}
