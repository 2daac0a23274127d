package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// maxAxes is the maximum number of axes of an input.
const maxAxes = strided.MaxAxes

// checkInputs checks the number of inputs and the rank of the first.
func checkInputs(in []tensor.Shape, n int) error {
	if len(in) != n {
		return errors.Errorf("there must be %d inputs, got %d", n, len(in))
	}
	if len(in[0]) > maxAxes {
		return errors.Errorf("input must have at most %d axes, got shape %v", maxAxes, in[0])
	}
	return nil
}

// checkAxis checks that there is one input, and that it has the axis.
func checkAxis(in []tensor.Shape, axis int) error {
	if err := checkInputs(in, 1); err != nil {
		return err
	}
	if axis < 0 || axis >= len(in[0]) {
		return errors.Errorf("axis must be one of an input of shape %v, got %d", in[0], axis)
	}
	return nil
}
