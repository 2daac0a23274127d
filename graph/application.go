package graph

import "slices"

// Application is an op and what it was applied to.
type Application struct {
	Scope  string // the layer it belongs to
	Op     Op
	Inputs []*Node
	Output *Node
}

// Applications are the ops applied so far, in order, as for a summary.
func (b *Builder) Applications() []Application { return slices.Clip(b.applications) }
