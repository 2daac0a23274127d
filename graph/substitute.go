package graph

import "github.com/pkg/errors"

// Substitute returns a copy of n in which the nodes that are keys of places are replaced by their
// values: for example the loss at displaced parameters, for finite differences of gradients and
// hence Hessian-vector products. The ops in between are applied a second time with the same
// attributes and streams, so that a dropout mask is the same in both copies; nodes that depend on
// none of the replaced ones are shared. Substitute must be called before Gradients. A replacement
// must have the shape and type of the node that it replaces.
func (b *Builder) Substitute(n *Node, places map[*Node]*Node) *Node {
	if b.err == nil && n == nil {
		b.Fail(errors.New("graph: substitute: the node is nil"))
	}
	if b.err == nil && b.differentiated {
		b.Fail(errors.New("graph: substitute: Substitute must be called before Gradients"))
	}
	// copies starts with the replacements, where applyAgain stops.
	copies := map[*Node]*Node{}
	for place, other := range places {
		if b.err == nil && (place == nil || other == nil || !ShapeOf(place).Equal(ShapeOf(other)) || DTypeOf(place) != DTypeOf(other)) {
			b.Fail(errors.Errorf("graph: substitute: the replacement of %v must have its type and shape %v, got %v of shape %v",
				place, ShapeOf(place), other, ShapeOf(other)))
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

// applyAgain returns a node's copy, or the node itself if it depends on no replaced node. copies
// maps every node that was visited to its result.
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
	// The node itself, unless it is applied again below.
	copies[n] = n
	if !changed || b.err != nil {
		return n
	}
	a, ok := n.Op().(*application)
	if !ok {
		b.Fail(errors.Errorf("graph: substitute: node %v must be an op of package graph/op, got one of Gorgonia's own", n))
		return nil
	}
	if _, ok := a.Op.(Updater); ok {
		b.Fail(errors.Errorf("graph: substitute: %s is an update, and a copy would change the same state", a.label()))
		return nil
	}
	defer b.Scope(a.scope)()
	defer b.Within(a.float)()
	copies[n] = b.Apply(a.Op, inputs...)
	return copies[n]
}
