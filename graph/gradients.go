package graph

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// Gradients returns d loss / d n for each n of nodes, by reverse-mode differentiation. There must
// be at least one node; they are parameters, or any others that the loss depends on. loss must be a
// scalar in the builder's float type. Gradients can be called only once, before the first update
// and the first metric. Like the rest of the builder it computes nothing: the gradients are new
// nodes, the inputs of updates.
func (b *Builder) Gradients(loss *Node, nodes ...*Node) []*Node {
	none := make([]*Node, len(nodes))
	if b.err != nil {
		return none
	}
	if err := b.checkUndifferentiated(); err != nil {
		b.Fail(err)
		return none
	}
	if loss == nil {
		b.Fail(errors.New("graph: gradients: the loss must not be nil"))
		return none
	}
	if len(ShapeOf(loss)) != 0 || DTypeOf(loss) != b.dtype {
		b.Fail(errors.Errorf("graph: gradients: the loss must be a scalar of %v, got shape %v of %v", b.dtype, ShapeOf(loss), DTypeOf(loss)))
		return none
	}
	if len(nodes) == 0 {
		b.Fail(errors.New("graph: gradients: there must be at least one node to differentiate by, got none"))
		return none
	}
	defer b.withoutHooks()()
	gorgoniaLock.Lock()
	defer gorgoniaLock.Unlock()
	reached := map[*Node]bool{}
	b.reach(loss, reached)
	for _, n := range nodes {
		if !reached[n] {
			b.Fail(errors.Errorf("graph: gradients: the loss does not depend on %v, or only through ops whose gradient is 0", n))
			return none
		}
	}
	if a := b.nonDifferentiable(loss, nodes); a != nil {
		b.Fail(errors.Errorf("graph: gradients: op %s has no gradient, and the loss depends through it on the nodes that it is differentiated by", a.label()))
		return none
	}
	b.differentiating, b.differentiated, b.terms = true, true, terms{}
	defer func() { b.differentiating, b.terms = false, nil }()
	// As in gorgonia.Grad, which accepts only inputs as nodes.
	start := b.graph.AddNode(gorgonia.NewConstant(oneOf(b.dtype)))
	b.terms.add(loss, start)
	gradients, err := gorgonia.Backpropagate(gorgonia.Nodes{loss}, gorgonia.Nodes{start}, nodes)
	if err != nil {
		b.Fail(errors.Wrap(err, "graph: gradients"))
		return none
	}
	for i, n := range nodes {
		if !b.terms.sumTo(b.graph, n, gradients[i]) {
			b.Fail(errors.Errorf("graph: gradients: the gradient by %v is not the sum of its terms: Gorgonia merges a sum with another", n))
			return none
		}
	}
	return gradients
}

// reach adds n and every node that it depends on to reached, except through a StopGradient.
func (b *Builder) reach(n *Node, reached map[*Node]bool) {
	if reached[n] {
		return
	}
	reached[n] = true
	if a, ok := n.Op().(*application); ok {
		if _, stops := a.Op.(StopGradient); stops {
			return
		}
	}
	for _, child := range childrenOf(b.graph, n) {
		b.reach(child, reached)
	}
}

// nonDifferentiable returns an application that is neither Differentiable nor a StopGradient and
// lies on a path from the loss to one of the nodes, or nil. Gorgonia would silently leave its term
// out of the gradient.
//
// A path is a chain of consumers. depends holds, for each visited node, whether one of the nodes is
// below it, seen through everything except a StopGradient.
func (b *Builder) nonDifferentiable(loss *Node, nodes []*Node) (found *application) {
	depends := map[*Node]bool{}
	for _, n := range nodes {
		depends[n] = true
	}
	seen := map[*Node]bool{}
	var visit func(n *Node) bool
	visit = func(n *Node) bool {
		if seen[n] {
			return depends[n]
		}
		seen[n] = true
		below := false
		for _, child := range childrenOf(b.graph, n) {
			below = visit(child) || below
		}
		if a, ok := n.Op().(*application); ok && below {
			if _, ok := a.Op.(StopGradient); ok {
				below = false
			} else if _, ok := a.Op.(Differentiable); !ok && found == nil {
				found = a
			}
		}
		depends[n] = depends[n] || below
		return depends[n]
	}
	visit(loss)
	return found
}

// terms are the gradients that reach each node from its consumers. Gorgonia adds them up, and
// distinguishes sums only by a hash of 32 bits: two sums with the same hash would become one, a
// wrong gradient without an error. So every sum is compared with its terms. Two of 10 000 sums have
// the same hash with a probability of 1 %.
type terms map[*Node][]*Node

func (t terms) add(n, gradient *Node) { t[n] = append(t[n], gradient) }

// sumTo reports whether gradient is the sum of all terms of n, with each term exactly once. A sum
// is a tree of fanIn.
func (t terms) sumTo(g *gorgonia.ExprGraph, n, gradient *Node) bool {
	missing := map[*Node]int{}
	for _, term := range t[n] {
		missing[term]++
	}
	var take func(*Node) bool
	take = func(sum *Node) bool {
		if missing[sum] > 0 {
			missing[sum]--
			return true
		}
		if op, err := opOf(sum); sum.Op() == nil || err != nil || op != Op(fanIn{}) {
			return false
		}
		return !slices.ContainsFunc(childrenOf(g, sum), func(part *Node) bool { return !take(part) })
	}
	if !take(gradient) {
		return false
	}
	for _, n := range missing {
		if n > 0 {
			return false
		}
	}
	return true
}

// checkUndifferentiated reports what the graph already has that must come after Gradients.
func (b *Builder) checkUndifferentiated() error {
	const rule = "graph: gradients: Gradients must be called only once, before updates and metrics: "
	switch {
	case b.differentiated:
		return errors.New(rule + "it was called before, as functions do that attach a sampler; take all gradients in one call")
	case len(b.updates) > 0:
		return errors.New(rule + "the graph has an update already")
	case len(b.metrics) > 0:
		return errors.Errorf(rule+"the graph has the metric %q already; record it afterwards", b.metrics[0].name)
	}
	return nil
}
