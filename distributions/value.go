package distributions

import "github.com/pollen-ml/pollen/graph"

// Value is a parameter of a distribution: a number, or a node of the graph's float type. The zero
// Value is the number 0.
type Value struct {
	number float64
	node   *graph.Node
	isNode bool
}

// Number returns a value that is known when the graph is built.
func Number(number float64) Value { return Value{number: number} }

// Node returns a value that the graph computes: a parameter, a function of others, a table.
func Node(node *graph.Node) Value { return Value{node: node, isNode: true} }
