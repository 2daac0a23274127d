package main

import (
	"context"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/tensor"
)

// study has what all methods share.
type study struct {
	*posterior
	ctx    context.Context
	data   datasets.Splits // training and test images
	device tensor.Device
	effort float64
	runs   *comparison.Comparison
	dir    string // directory of the runs

	temporary bool // dir is removed at the end
}

// scaled scales a number of epochs or draws by the effort.
func (s *study) scaled(n int) int { return max(1, int(s.effort*float64(n))) }

// method is a way to approximate the posterior's predictions.
type method struct {
	name string
	spec func(s *study) bayes.Spec
}
