package stock

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// Refused is the error for a node of a stock graph that has no translation, or whose translation
// could be wrong.
type Refused struct {
	// Node is the node's name, or its number in the graph.
	Node string
	// Op is Gorgonia's text of the op; "" for an input.
	Op string
	// Reason explains the refusal, and Remedy suggests what to write instead.
	Reason string
	Remedy string
}

// Error implements error.
func (e *Refused) Error() string {
	text := "stock: " + e.Node
	if e.Op != "" {
		text += ": op " + e.Op
	}
	return text + ": " + e.Reason + "; " + e.Remedy
}

// refusal returns the error for a node.
func refusal(n *gorgonia.Node, reason, remedy string) error {
	e := &Refused{Node: labelOf(n), Reason: reason, Remedy: remedy}
	if n.Op() != nil {
		e.Op = n.Op().String()
	}
	return e
}

// labelOf returns a node's name or, for a node without WithName, its number.
func labelOf(n *gorgonia.Node) string {
	if name := givenName(n); name != "" {
		return fmt.Sprintf("node %q", name)
	}
	return fmt.Sprintf("node %d", n.ID())
}

// givenName returns the name that WithName gave a node, or "": Node.Name invents one.
func givenName(n *gorgonia.Node) string {
	a, err := attributesOf(n)
	if err != nil {
		return ""
	}
	return a.fields.FieldByName("name").String()
}
