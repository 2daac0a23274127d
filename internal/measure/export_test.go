package measure

import (
	"context"

	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Names for external tests, which may train with package bayes.
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

// Terms are the terms of one weighting.
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

// Solve returns (P + tau + R R')^-1 g, for the columns of R, one after another, and one precision
// of the prior for each parameter.
func Solve(columns []float32, scale float64, precisions []float64, tau float64, g [][]float64) ([][]float64, error) {
	d := &determination{precisions: precisions, tau: tau, columns: columns, scale: scale}
	for _, values := range g {
		d.starts = append(d.starts, d.weights)
		d.weights += len(values)
	}
	d.starts, d.rank = append(d.starts, d.weights), len(columns)/d.weights
	return d.solve(g)
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
