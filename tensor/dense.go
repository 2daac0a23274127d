package tensor

import (
	"github.com/pkg/errors"
	dense "gorgonia.org/tensor"
)

// ToDense wraps values as a Gorgonia tensor of that shape, without a copy.
func ToDense[T Element](shape Shape, values []T) (*dense.Dense, error) {
	if shape.Elements() != len(values) {
		return nil, errors.Errorf("tensor: to dense: shape %v wants %d elements, got %d", shape, shape.Elements(), len(values))
	}
	if len(shape) == 0 {
		return dense.New(dense.FromScalar(values[0])), nil
	}
	return dense.New(dense.WithShape(shape...), dense.WithBacking(values)), nil
}
