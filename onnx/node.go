package onnx

import (
	"fmt"
	"iter"
	"slices"

	"github.com/pkg/errors"
)

// node is an application of an operator. An input that is left out has an empty name.
type node struct {
	name, op, domain, overload string
	inputs, outputs            []string
	attributes                 map[string]*attribute
	opset                      int // version of the standard operators
	branches                   *branches
}

// String returns how errors name the node.
func (n *node) String() string {
	name := n.name
	if name == "" && len(n.outputs) > 0 {
		name = "-> " + n.outputs[0]
	}
	return fmt.Sprintf("%s (%s)", name, n.op)
}

// label returns a name for the node, which need not be unique.
func (n *node) label() string {
	for _, name := range append([]string{n.name}, n.outputs...) {
		if name != "" {
			return name
		}
	}
	return n.op
}

// attribute is a named constant of a node.
type attribute struct {
	integer  int64
	float    float64
	text     string
	integers []int64
	floats   []float64
	texts    []string
	tensor   *storedTensor
	graph    []byte
	kind     int    // one of ONNX's types of attributes; 0 if the file does not have it
	refersTo string // attribute of the function's call that has the value, if this is in a function
}

// readNode reads a node that is in the given number of branches.
func readNode(message []byte, depth int) (*node, error) {
	n := &node{attributes: map[string]*attribute{}}
	err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			n.inputs = append(n.inputs, string(f.bytes))
		case 2:
			n.outputs = append(n.outputs, string(f.bytes))
		case 3:
			n.name = string(f.bytes)
		case 4:
			n.op = string(f.bytes)
		case 5:
			name, a, err := readAttribute(f.bytes)
			n.attributes[name] = a
			return err
		case 7:
			n.domain = string(f.bytes)
		case 8:
			n.overload = string(f.bytes)
		}
		return nil
	})
	if err == nil && n.op == "If" && standardDomain(n.domain) {
		n.branches, err = n.readBranches(depth)
	}
	return n, errors.WithMessagef(err, "node %s", n)
}

func readAttribute(message []byte) (string, *attribute, error) {
	a, name := &attribute{}, ""
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			name = string(f.bytes)
		case 2:
			v, _ := f.floats(nil)
			if len(v) > 0 {
				a.float = v[0]
			}
		case 3:
			a.integer = int64(f.value)
		case 4:
			a.text = string(f.bytes)
		case 5:
			a.tensor, err = readTensor(f.bytes)
		case 6:
			a.graph = f.bytes
		case 7:
			a.floats, err = f.floats(a.floats)
		case 8:
			a.integers, err = f.integers(a.integers)
		case 9:
			a.texts = append(a.texts, string(f.bytes))
		case 20:
			a.kind = int(f.value)
		case 21:
			a.refersTo = string(f.bytes)
		}
		return err
	})
	return name, a, errors.WithMessagef(err, "attribute %s", name)
}

// branches are the graphs of an If.
type branches struct {
	then, otherwise branch
	reads           []string // values made outside of them
}

// branch is a graph that is applied if a condition holds. Its tensors are nodes, which make
// constants.
type branch struct {
	nodes   []*node
	outputs []string
}

// maxDepth is how many branches a node may be in.
const maxDepth = 100

// readBranches reads the branches of an If that is in depth others.
func (n *node) readBranches(depth int) (*branches, error) {
	if depth >= maxDepth {
		return nil, errors.Errorf("branches must contain at most %d others", maxDepth)
	}
	both := &branches{}
	for _, b := range []struct {
		name string
		to   *branch
	}{{"then_branch", &both.then}, {"else_branch", &both.otherwise}} {
		a := n.attributes[b.name]
		if a == nil || a.graph == nil {
			return nil, errors.Errorf("attribute %s must be a graph", b.name)
		}
		if err := b.to.read(a.graph, depth+1); err != nil {
			return nil, errors.WithMessage(err, b.name)
		}
		if len(b.to.outputs) != len(n.outputs) {
			return nil, errors.Errorf("%s must have %d outputs as the node, got %d", b.name, len(n.outputs), len(b.to.outputs))
		}
	}
	n.attributes = map[string]*attribute{}
	return both, nil
}

func (b *branch) read(message []byte, depth int) error {
	var constants []*node
	err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			n, err := readNode(f.bytes, depth)
			b.nodes = append(b.nodes, n)
			return err
		case 5:
			t, err := readTensor(f.bytes)
			if err != nil {
				return err
			}
			constants = append(constants, &node{op: "Constant", outputs: []string{t.Name}, attributes: map[string]*attribute{"value": {tensor: t}}})
		case 12:
			v, err := readValue(f.bytes)
			b.outputs = append(b.outputs, v.Name)
			return err
		case 15:
			return errSparse
		}
		return nil
	})
	b.nodes = append(constants, b.nodes...)
	return err
}

// everyNode yields nodes and the nodes in their branches.
func everyNode(nodes []*node) iter.Seq[*node] {
	return func(yield func(*node) bool) { yieldEvery(nodes, yield) }
}

func yieldEvery(nodes []*node, yield func(*node) bool) bool {
	for _, n := range nodes {
		if !yield(n) || n.branches != nil && !(yieldEvery(n.branches.then.nodes, yield) && yieldEvery(n.branches.otherwise.nodes, yield)) {
			return false
		}
	}
	return true
}

// reads returns the values that a node depends on.
func (n *node) reads() []string {
	if n.branches == nil {
		return n.inputs
	}
	return slices.Concat(n.inputs, n.branches.reads)
}

func standardDomain(domain string) bool { return domain == "" || domain == "ai.onnx" }

var errSparse = errors.New("sparse tensors are not supported: store them as dense ones")
