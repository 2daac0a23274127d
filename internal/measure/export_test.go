package measure

import (
	"context"

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

func (f Field) At(ctx context.Context, sample samples.Sample) (product, divergence float64, err error) {
	return f.at(ctx, sample)
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
