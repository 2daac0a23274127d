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

// FromDense returns the memory of a Gorgonia tensor, without a copy. A view that is not contiguous,
// row-major and of T is an error.
func FromDense[T Element](d *dense.Dense) ([]T, error) {
	if d.DataOrder().IsColMajor() || d.RequiresIterator() {
		return nil, errors.Errorf("tensor: from dense: a view of shape %v is not contiguous in rows; clone it first", d.Shape())
	}
	switch data := d.Data().(type) {
	case []T:
		return data, nil
	case T:
		return []T{data}, nil
	default:
		return nil, errors.Errorf("tensor: from dense: the tensor holds %v, wants %v", d.Dtype(), DTypeOf[T]())
	}
}
