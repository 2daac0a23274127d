package array

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// maxAxes is the most axes of an input.
const maxAxes = strided.MaxAxes

// checkInputs checks the number of inputs, and that the first has few enough axes.
func checkInputs(in []tensor.Shape, n int) error {
	if len(in) != n {
		return errors.Errorf("got %d inputs, wants %d", len(in), n)
	}
	if len(in[0]) > maxAxes {
		return errors.Errorf("input has shape %v, wants at most %d axes", in[0], maxAxes)
	}
	return nil
}

// checkAxis is checkInputs of one input, which has the axis.
func checkAxis(in []tensor.Shape, axis int) error {
	if err := checkInputs(in, 1); err != nil {
		return err
	}
	if axis < 0 || axis >= len(in[0]) {
		return errors.Errorf("axis is %d, the input has shape %v: wants one of its axes", axis, in[0])
	}
	return nil
}
