package graph

import "slices"

// Application is an op with the inputs that it was applied to.
type Application struct {
	Scope  string // the layer it belongs to
	Op     Op
	Inputs []*Node
	Output *Node
}

// Applications returns the ops applied so far, in order, those of gradients included.
func (b *Builder) Applications() []Application { return slices.Clip(b.applications) }
