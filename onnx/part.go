package onnx

import (
	"slices"

	"github.com/pkg/errors"
)

// Options select a part of a model, and the weights that are sampled.
type Options struct {
	// Output is the value that the network returns: an output of the model, or of any of its nodes.
	// The default is the first output of the model.
	Output string
	// Frozen reports whether the weight called name is a constant rather than a parameter. It is
	// nil if all weights are parameters. The running statistics of batch normalisation are
	// constants in any case.
	Frozen func(name string) bool
	// Offset reports whether the weight called name is the file's value plus a parameter that
	// starts at 0, so that a prior of the parameter is centred on the file's value. It is nil if
	// there is no such weight.
	Offset func(name string) bool
}

// part is the part of a model from its input to one value.
type part struct {
	model  *Model
	input  string
	output string
	frozen func(name string) bool
	offset func(name string) bool
	nodes  []*node // that the output depends on, in order

	makers  map[string]*node   // of the values that nodes make
	readers map[string][]*node // of values, a node once for each input
}

// follows reports whether a value depends on the input.
func (p *part) follows(name string) bool {
	following := map[string]bool{p.input: true}
	for _, node := range p.nodes {
		if slices.ContainsFunc(node.reads(), func(name string) bool { return following[name] }) {
			for _, y := range node.outputs {
				following[y] = true
			}
		}
	}
	return following[name]
}

// part selects the nodes that an output depends on.
func (m *Model) part(o Options) (*part, error) {
	if len(m.Inputs) != 1 {
		return nil, errors.Errorf("onnx: the model must have one input, got %d", len(m.Inputs))
	}
	p := &part{model: m, input: m.Inputs[0].Name, output: o.Output, frozen: o.Frozen, offset: o.Offset}
	if p.output == "" {
		if len(m.Outputs) == 0 {
			return nil, errors.New("onnx: the model has no output")
		}
		p.output = m.Outputs[0].Name
	}
	return p, errors.WithMessage(p.choose(m.nodes), "onnx")
}

// choose keeps the nodes that the output depends on.
func (p *part) choose(nodes []*node) error {
	p.nodes = needed(nodes, []string{p.output})
	p.makers, p.readers = map[string]*node{}, map[string][]*node{}
	for _, node := range p.nodes {
		for _, name := range node.reads() {
			p.readers[name] = append(p.readers[name], node)
		}
		for _, name := range node.outputs {
			p.makers[name] = node
		}
	}
	names := []string{p.output}
	for _, node := range p.nodes {
		names = append(names, node.reads()...)
	}
	for _, name := range names {
		if name != "" && name != p.input && p.makers[name] == nil && p.model.tensors[name] == nil {
			return errors.Errorf("no node makes the value %q", name)
		}
	}
	return nil
}

// needed returns the nodes that values depend on, in order.
func needed(nodes []*node, values []string) []*node {
	makers := map[string]*node{}
	for _, node := range nodes {
		for _, name := range node.outputs {
			makers[name] = node
		}
	}
	delete(makers, "")
	found := map[*node]bool{}
	for names := slices.Clone(values); len(names) > 0; {
		maker := makers[names[len(names)-1]]
		names = names[:len(names)-1]
		if maker != nil && !found[maker] {
			found[maker] = true
			names = append(names, maker.reads()...)
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return !found[n] })
}
