package stock

import (
	"fmt"
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// findFetches finds the loss, and the nodes whose values are stored after a run: those that are
// read, have a name, or have no user, and with KeepAll all that can be computed. updates are the
// nodes that are computed from gradients. It clears the nodes' values from an earlier machine: a
// program that reads a node without a value then fails instead of reading an old one.
func (m *Machine) findFetches(keepAll bool) (wanted, updates []fetch, err error) {
	s := m.survey
	if err := m.findLoss(); err != nil {
		return nil, nil, err
	}
	var kept map[*gorgonia.Node]bool
	if keepAll {
		kept = m.computable()
	}
	// A Read is a node of the graph, which has the node to read as its input.
	reads := map[*gorgonia.Node][]*gorgonia.Value{}
	for _, n := range s.all {
		switch statement := s.info[n]; statement.kind {
		case "letOp":
			return nil, nil, refusal(n, "it is an assignment of the graph", "call the machine's Set after RunAll")
		case "readOp":
			reads[statement.inputs[0]] = append(reads[statement.inputs[0]], statement.into())
		}
	}
	for _, n := range s.all {
		node := s.info[n]
		if node.isInput() && reads[n] == nil || node.isConstant() || node.isStatement() {
			continue
		}
		if !node.isInput() {
			clearValue(n)
		}
		// Statements such as Read are no users: they compute nothing.
		unused := true
		for _, user := range node.users {
			unused = unused && s.info[user].isStatement()
		}
		named := givenName(n) != "" && node.kind != ""
		switch {
		case n == m.loss: // a metric, see storeLoss
			m.lossReads = reads[n]
		case s.update[n] && (named || unused || keepAll), s.gradient[n] && reads[n] != nil:
			updates = append(updates, fetch{node: n, reads: reads[n]})
		case s.gradient[n]: // Grad's own nodes get Pollen's gradients, see differentiate
		case reads[n] != nil || named || unused && node.written == nil && !s.isRemnant(node) || kept[n]:
			wanted = append(wanted, fetch{node: n, reads: reads[n]})
		}
	}
	if len(wanted) == 0 && m.loss == nil {
		return nil, nil, errors.New("stock: the graph has no node to compute")
	}
	return wanted, updates, nil
}

// computable returns the nodes that can be translated one by one. It leaves out nodes that are
// only translated together with others, such as a convolution's Im2Col.
func (m *Machine) computable() map[*gorgonia.Node]bool {
	s, kept := m.survey, map[*gorgonia.Node]bool{}
	var t *translator
	for _, n := range s.all {
		node := s.info[n]
		if node.isInput() || node.isStatement() || node.written != nil || s.gradient[n] || s.isRemnant(node) {
			continue
		}
		if t == nil || t.b.Err() != nil { // an error of a builder stays
			t = m.newTrial(s.typeOf(n))
		}
		if t.visit(n); t.b.Err() == nil {
			kept[n] = true
		}
	}
	return kept
}

// newTrial returns a translator whose results are not used.
func (m *Machine) newTrial(dtype dense.Dtype) *translator {
	float := tensor.Float32
	if dtype == dense.Float64 {
		float = tensor.Float64
	}
	b := graph.New(float)
	t := newTranslator(m.survey, b, dtype)
	t.evaluating = m.options.evaluating
	t.input = func(n *gorgonia.Node) *graph.Node {
		return b.Data(fmt.Sprintf("%s.%d", givenName(n), n.ID()), float, n.Shape()...)
	}
	t.runtimeInput = func(name string, shape tensor.Shape, _ func() []float64) *graph.Node {
		return b.Data(name, float, shape...)
	}
	return t
}

// isRemnant reports whether a node is a product whose logarithm Gorgonia has rewritten as a sum. It
// has no user any more, and is no result of the program.
func (s *survey) isRemnant(m *nodeInfo) bool {
	return slices.ContainsFunc(s.all, func(n *gorgonia.Node) bool { return s.info[n].written == m.Node })
}

// findLoss finds the node that Grad was called with: it has a derivative, and its users have none.
// Gorgonia keeps no record of the call. Without such a node the machine computes no gradients.
func (m *Machine) findLoss() error {
	s := m.survey
	for _, n := range s.all {
		if n.Deriv() == nil || n.Op() == nil || s.differentiatedUser(n) {
			continue
		}
		if m.loss != nil {
			return refusal(n, "Grad was called with it and with "+labelOf(m.loss)+": two losses", "add the losses, and call Grad once")
		}
		m.loss = n
	}
	if m.loss == nil {
		return nil
	}
	// Grad goes from the loss to the inputs, so that the loss is the first node of the constant 1's
	// DerivOf. If Grad was called for a part of the loss before, the rest has no gradient.
	first := m.loss.Deriv().DerivOf()
	if len(first) > 0 && first[0] != m.loss {
		return refusal(m.loss, "Grad was called with "+labelOf(first[0])+", which it contains, before: two losses", "call Grad once")
	}
	if !m.loss.IsScalar() {
		return refusal(m.loss, "the loss is not a scalar", "take its Sum or Mean")
	}
	return nil
}

// differentiatedUser reports whether a user of the node has a derivative: the node is then inside
// the loss.
func (s *survey) differentiatedUser(n *gorgonia.Node) bool {
	return slices.ContainsFunc(s.info[n].users, func(user *gorgonia.Node) bool { return user.Deriv() != nil })
}

// dtype returns the type of the loss or, without one, of the first fetched value: the float in
// which all of the graph is computed.
func (m *Machine) dtype(wanted []fetch) (tensor.DType, error) {
	n := m.loss
	if n == nil {
		n = wanted[0].node
	}
	switch dtype := m.survey.typeOf(n); dtype {
	case dense.Float32:
		return tensor.Float32, nil
	case dense.Float64:
		return tensor.Float64, nil
	default:
		return 0, refusal(n, "its numbers are "+dtype.String(), "make all nodes float32, or all float64")
	}
}
