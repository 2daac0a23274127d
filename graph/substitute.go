package graph

import "github.com/pkg/errors"

// Substitute returns what a node would be if other nodes took the places of some that it depends
// on, such as a loss at other parameters. The ops in between are applied a second time, with the
// same attributes, so that a dropout mask is the same one; what depends on none of the places is
// shared. It must be called before Gradients, with nodes of equal shape and type.
func (b *Builder) Substitute(n *Node, places map[*Node]*Node) *Node {
	if b.err == nil && n == nil {
		b.Fail(errors.New("graph: substitute: the node is nil"))
	}
	if b.err == nil && b.differentiated {
		b.Fail(errors.New("graph: substitute: wants to be called before gradients"))
	}
	copies := map[*Node]*Node{}
	for place, other := range places {
		if b.err == nil && (place == nil || other == nil || !ShapeOf(place).Equal(ShapeOf(other)) || DTypeOf(place) != DTypeOf(other)) {
			b.Fail(errors.Errorf("graph: substitute: %v of shape %v for %v of shape %v, wants the same shape and type",
				other, ShapeOf(other), place, ShapeOf(place)))
		}
		copies[place] = other
	}
	if b.err != nil {
		return nil
	}
	defer b.withoutHooks()()
	other := b.applyAgain(n, copies)
	if b.err == nil && other == n {
		b.Fail(errors.Errorf("graph: substitute: %v depends on none of the %d nodes to be replaced", n, len(places)))
	}
	return other
}

// applyAgain returns a node's copy, or the node itself when it depends on nothing that was
// replaced.
func (b *Builder) applyAgain(n *Node, copies map[*Node]*Node) *Node {
	if other, ok := copies[n]; ok || b.err != nil {
		return other
	}
	children := childrenOf(b.graph, n)
	inputs, changed := make([]*Node, len(children)), false
	for i, child := range children {
		inputs[i] = b.applyAgain(child, copies)
		changed = changed || inputs[i] != child
	}
	copies[n] = n
	if !changed || b.err != nil {
		return n
	}
	a, ok := n.Op().(*application)
	if !ok {
		b.Fail(errors.Errorf("graph: substitute: node %v is Gorgonia's own, wants an op of package graph/op", n))
		return nil
	}
	if _, ok := a.Op.(Updater); ok {
		b.Fail(errors.Errorf("graph: substitute: %s changes state, which a second one would change too", a.label()))
		return nil
	}
	defer b.Scope(a.scope)()
	defer b.Within(a.float)()
	copies[n] = b.Apply(a.Op, inputs...)
	return copies[n]
}
