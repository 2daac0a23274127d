package graph

// Application is an op and what it was applied to.
type Application struct {
	Scope  string // the layer it belongs to
	Op     Op
	Inputs []*Node
	Output *Node
}

// Applications are the ops applied so far, in order, as for a summary.
func (b *Builder) Applications() []Application {
	var list []Application
	for _, n := range b.graph.AllNodes() {
		if a, ok := n.Op().(*application); ok {
			list = append(list, Application{Scope: a.scope, Op: a.Op, Inputs: childrenOf(b.graph, n), Output: n})
		}
	}
	return list
}
