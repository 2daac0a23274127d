package stock

import (
	"fmt"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
)

// survey is a stock graph with what Gorgonia does not export: inputs, users, attributes. It
// separates the forward graph, which is translated, from the gradient nodes, which are not.
type survey struct {
	all  gorgonia.Nodes // in order of creation: inputs come before their users
	info map[*gorgonia.Node]*nodeInfo

	// gradient has the nodes that Grad has made, and those that are computed from them.
	gradient map[*gorgonia.Node]bool
	// update has those nodes of gradient that the program itself has made from the nodes that Grad
	// returned, such as w - 0.1 dw.
	update map[*gorgonia.Node]bool
}

// nodeInfo is a node of the graph with what Gorgonia does not export.
type nodeInfo struct {
	*gorgonia.Node
	attributes // of its op
	inputs     gorgonia.Nodes
	users      gorgonia.Nodes // with repetitions, if a user has the node as several inputs

	// Gorgonia rewrites Log(softmax * y) as log softmax + log y, and changes the softmax itself
	// into a log softmax. written is the product in the original expression; probabilities marks
	// the changed softmax.
	written       *gorgonia.Node
	probabilities bool
}

// An input, parameter or data, has no op; a constant has one in Gorgonia. A statement computes
// nothing and is executed for its effect.
func (m *nodeInfo) isInput() bool     { return m.Op() == nil }
func (m *nodeInfo) isConstant() bool  { return m.is("constantScalar", "constantTensor") }
func (m *nodeInfo) isStatement() bool { return m.is("readOp", "letOp") }

// surveyOf reads a graph. It does not use ExprGraph.From and To, whose indices are wrong after
// Gorgonia has removed a node. It is called once for a graph, before anything is translated: nodes
// that the program adds to the graph later are unknown to the result.
func surveyOf(g *gorgonia.ExprGraph) (*survey, error) {
	if g == nil {
		return nil, errors.New("stock: the graph is nil")
	}
	s := &survey{all: g.AllNodes(), info: map[*gorgonia.Node]*nodeInfo{}}
	for _, n := range s.all {
		fields, err := attributesOf(n)
		if err != nil {
			return nil, err
		}
		m := &nodeInfo{Node: n, inputs: fields.nodes("children")}
		if n.Op() != nil {
			if m.attributes, err = attributesOf(n.Op()); err != nil {
				return nil, err
			}
		}
		s.info[n] = m
	}
	for _, n := range s.all {
		for i, input := range s.info[n].inputs {
			child, ok := s.info[input]
			// Gorgonia may use a removed node again as a later one, hence the comparison of
			// numbers.
			if !ok || input.ID() >= n.ID() {
				return nil, refusal(n, fmt.Sprintf("its input %d is a node that Gorgonia has removed, as it removes 1 + x where Log(1 + x) is made", i),
					"take the logarithm by Log1p(x), or make 1 + x a second time, after it")
			}
			child.users = append(child.users, n)
		}
	}
	s.findGradients()
	for _, n := range s.all {
		s.undoLogarithm(s.info[n])
	}
	return s, nil
}

// findGradients separates the nodes that Grad has made from the forward graph. The forward graph
// is everything that a node with a derivative depends on. Grad marks nodes (Deriv), but not which
// nodes it made: these are the derivatives, the nodes computed from them, and the nodes that only
// they use.
func (s *survey) findGradients() {
	s.gradient = map[*gorgonia.Node]bool{}
	forward := map[*gorgonia.Node]bool{}
	for _, n := range s.all {
		if n.Deriv() != nil {
			s.reach(forward, n)
		}
	}
	for _, n := range s.all {
		if d := n.Deriv(); d != nil && !forward[d] && !s.info[d].isConstant() {
			s.gradient[d] = true
		}
	}
	for _, n := range s.all { // inputs come first
		for _, input := range s.info[n].inputs {
			if s.gradient[input] && !forward[n] {
				s.gradient[n] = true
			}
		}
	}
	for i := len(s.all) - 1; i >= 0; i-- { // nodes that only gradients use
		m := s.info[s.all[i]]
		only := len(m.users) > 0 && !forward[m.Node] && !m.isInput() && !m.isConstant()
		for _, user := range m.users {
			only = only && s.gradient[user]
		}
		if only {
			s.gradient[m.Node] = true
		}
	}
	s.findUpdates()
}

// findUpdates finds the nodes that the program, not Grad, made from gradients: they are computed
// from the gradient by an input, and no derivative needs them.
func (s *survey) findUpdates() {
	s.update = map[*gorgonia.Node]bool{}
	needed, returned := map[*gorgonia.Node]bool{}, map[*gorgonia.Node]bool{}
	for _, n := range s.all {
		if d := n.Deriv(); d != nil && s.gradient[d] {
			s.reach(needed, d)
			returned[d] = returned[d] || n.Op() == nil
		}
	}
	for _, n := range s.all { // inputs come first
		for _, input := range s.info[n].inputs {
			if (returned[input] || s.update[input]) && s.gradient[n] && !needed[n] && !s.info[n].isStatement() {
				s.update[n] = true
			}
		}
	}
	for i := len(s.all) - 1; i >= 0; i-- { // nodes that only these use, such as a decaying rate
		m := s.info[s.all[i]]
		only := len(m.users) > 0 && s.gradient[m.Node] && !needed[m.Node]
		for _, user := range m.users {
			only = only && s.update[user]
		}
		if only {
			s.update[m.Node] = true
		}
	}
}

// userCount returns how many times the forward graph uses a node's value. A size does not use the
// value.
func (s *survey) userCount(m *nodeInfo) int {
	count := 0
	for _, user := range m.users {
		if !s.gradient[user] && !s.info[user].isStatement() && !s.info[user].is("sizeOp") {
			count++
		}
	}
	return count
}

// undoLogarithm recognises Gorgonia's rewriting of the logarithm of a product with a softmax: the
// product remains in the graph without a user.
func (s *survey) undoLogarithm(m *nodeInfo) {
	if r, err := m.operator(); err != nil || r != multiply || s.userCount(m) > 0 {
		return
	}
	a, b := s.info[m.inputs[0]], s.info[m.inputs[1]]
	// The softmax has become its own logarithm, so that the sum is a user of a or of b.
	for _, sum := range append(append(gorgonia.Nodes{}, a.users...), b.users...) {
		r, err := s.info[sum].operator()
		if err != nil || r != add || s.info[sum].written != nil {
			continue
		}
		terms := s.info[sum].inputs
		if s.isLogarithmOf(terms[0], a) && s.isLogarithmOf(terms[1], b) {
			s.info[sum].written = m.Node
			for _, factor := range []*nodeInfo{a, b} {
				factor.probabilities = factor.probabilities || factor.is("softmaxOp")
			}
		}
	}
}

// explain adds the usual cause to the error of a loss that is not finite.
func (s *survey) explain(err error) error {
	// Any such rewriting is a likely cause, since its labels are usually 0 and 1.
	for _, m := range s.info {
		if _, ok := err.(*graph.NotFinite); ok && m.written != nil {
			return errors.WithMessage(err, "the logarithm of 0: Log(softmax * labels) is -Inf where a label is 0, write HadamardProd(labels, Log(softmax))")
		}
	}
	return err
}

// isLogarithmOf reports whether a term is the logarithm of a factor. For a softmax, which Gorgonia
// has changed into its logarithm, that is the node itself.
func (s *survey) isLogarithmOf(term *gorgonia.Node, factor *nodeInfo) bool {
	if factor.is("softmaxOp") && factor.bool("isLog") {
		return term == factor.Node
	}
	log := s.info[term]
	return log.is("elemUnaryOp") && log.Op().String() == "ln" && log.inputs[0] == factor.Node
}

// operator returns the operator of an elementwise op of two inputs, or -1 for any other op.
func (m *nodeInfo) operator() (binaryOp, error) {
	if !m.is("elemBinOp") {
		return -1, nil
	}
	return m.binary()
}

// reach adds nodes, and all nodes that they depend on, to reached.
func (s *survey) reach(reached map[*gorgonia.Node]bool, from ...*gorgonia.Node) {
	for _, n := range from {
		if !reached[n] {
			reached[n] = true
			s.reach(reached, s.info[n].inputs...)
		}
	}
}
