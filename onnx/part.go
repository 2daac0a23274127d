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
		if slices.ContainsFunc(node.inputs, func(name string) bool { return following[name] }) {
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
	p := &part{model: m, input: m.Inputs[0].Name, output: o.Output, frozen: o.Frozen, offset: o.Offset,
		makers: map[string]*node{}, readers: map[string][]*node{}}
	if p.output == "" {
		if len(m.Outputs) == 0 {
			return nil, errors.New("onnx: the model has no output")
		}
		p.output = m.Outputs[0].Name
	}
	makers := map[string]*node{}
	for _, node := range m.nodes {
		for _, name := range node.outputs {
			makers[name] = node
		}
	}
	needed := map[*node]bool{}
	for names := []string{p.output}; len(names) > 0; {
		name := names[len(names)-1]
		names = names[:len(names)-1]
		maker := makers[name]
		switch {
		case name == "" || name == p.input || m.tensors[name] != nil:
		case maker == nil:
			return nil, errors.Errorf("onnx: no node makes the value %q", name)
		case !needed[maker]:
			needed[maker] = true
			names = append(names, maker.inputs...)
		}
	}
	for _, node := range m.nodes {
		if !needed[node] {
			continue
		}
		p.nodes = append(p.nodes, node)
		for _, name := range node.inputs {
			p.readers[name] = append(p.readers[name], node)
		}
		for _, name := range node.outputs {
			p.makers[name] = node
		}
	}
	return p, nil
}
