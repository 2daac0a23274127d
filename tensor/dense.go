package tensor

import (
	"github.com/pkg/errors"
	dense "gorgonia.org/tensor"
)

// ToDense wraps values as a Gorgonia tensor of the given shape, without copying. It returns an
// error if the shape has a different number of elements.
func ToDense[T Element](shape Shape, values []T) (*dense.Dense, error) {
	if shape.Elements() != len(values) {
		return nil, errors.Errorf("tensor: to dense: values must have the %d elements of shape %v, got %d", shape.Elements(), shape, len(values))
	}
	if len(shape) == 0 {
		return dense.New(dense.FromScalar(values[0])), nil
	}
	return dense.New(dense.WithShape(shape...), dense.WithBacking(values)), nil
}
