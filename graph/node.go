package graph

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/tensor"
)

// Node is a node of Gorgonia's graph. Its value is not used: values live in a Session, one for each
// chain, and Builder.Output makes one readable.
type Node = gorgonia.Node

// ShapeOf returns the shape of a node's value, empty for a scalar. It returns nil for a nil node,
// which a Builder returns after an error.
func ShapeOf(n *Node) tensor.Shape {
	if n == nil {
		return nil
	}
	return tensor.Shape(n.Shape())
}

// DTypeOf returns the type of a node's elements, or 0 for a nil node.
func DTypeOf(n *Node) tensor.DType {
	if n == nil {
		return 0
	}
	for ours, theirs := range gorgoniaTypes {
		if theirs == n.Dtype() {
			return ours
		}
	}
	panic(errors.Errorf("graph: node %v is of %v, which no Builder makes", n, n.Dtype()))
}

// gorgoniaTypes are the types of elements that a graph may have, as Gorgonia's.
var gorgoniaTypes = map[tensor.DType]dense.Dtype{
	tensor.Float32: dense.Float32,
	tensor.Float64: dense.Float64,
	tensor.Uint8:   dense.Uint8,
	tensor.Int32:   dense.Int32,
	tensor.Uint64:  dense.Uint64,
}
