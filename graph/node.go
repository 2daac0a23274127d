package graph

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/tensor"
)

// Node is a node of Gorgonia's graph, as Gorgonia has it.
type Node = gorgonia.Node

// ShapeOf is the shape of a node's value; a scalar's is empty. A nil node, which a failed Builder
// hands out, has none.
func ShapeOf(n *Node) tensor.Shape {
	if n == nil {
		return nil
	}
	return tensor.Shape(n.Shape())
}

// DTypeOf is the type of a node's elements.
func DTypeOf(n *Node) tensor.DType {
	if n == nil {
		return 0
	}
	dtype, err := fromGorgonia(n.Dtype())
	if err != nil {
		panic(err) // the Builder makes no others
	}
	return dtype
}

var gorgoniaTypes = map[tensor.DType]dense.Dtype{
	tensor.Float32: dense.Float32,
	tensor.Float64: dense.Float64,
	tensor.Uint8:   dense.Uint8,
	tensor.Int32:   dense.Int32,
	tensor.Uint64:  dense.Uint64,
}

func fromGorgonia(dtype dense.Dtype) (tensor.DType, error) {
	for ours, theirs := range gorgoniaTypes {
		if theirs == dtype {
			return ours, nil
		}
	}
	return 0, errors.Errorf("graph: elements of type %v, wants float32, float64, uint8, int32 or uint64", dtype)
}
