package onnx

import (
	"fmt"
	"slices"

	"github.com/pkg/errors"
)

// A model may have functions of its own, which are called like operators: PyTorch's exporters write
// them for modules and for operators of ATen. The nodes of a function replace each node that calls
// it, so that the rest of the package sees operators only. Their names begin with the call's.
//
// If a function has the name of a standard operator that has a translation, calls are to the
// operator. The specification leaves the choice to the reader, and ONNX Runtime makes the same one.

// operators has the names of the standard operators with a translation, which the init function
// of translations adds.
var operators = map[string]bool{"If": true}

// functionName identifies a function. The domain of standard operators is "".
type functionName struct{ domain, name, overload string }

func (n functionName) String() string {
	text := n.name
	if n.domain != "" {
		text = n.domain + "." + n.name
	}
	if n.overload != "" {
		text += ":" + n.overload
	}
	return text
}

func nameOf(domain, name, overload string) functionName {
	if standardDomain(domain) {
		domain = ""
	}
	return functionName{domain, name, overload}
}

// function is a function of a model. Its body is read when it is first called.
type function struct {
	name            functionName
	message         []byte
	read            bool
	inputs, outputs []string
	defaults        map[string]*attribute
	nodes           []*node
	opset           int
}

// addFunction reads the name of a function.
func addFunction(functions map[functionName]*function, message []byte) error {
	var name, domain, overload string
	err := fields(message, func(f field) error {
		switch f.number {
		case 1:
			name = string(f.bytes)
		case 10:
			domain = string(f.bytes)
		case 13:
			overload = string(f.bytes)
		}
		return nil
	})
	f := &function{name: nameOf(domain, name, overload), message: message}
	if err == nil && functions[f.name] != nil {
		err = errors.New("the model must have one function of the name, got two")
	}
	functions[f.name] = f
	return errors.WithMessagef(err, "function %s", f.name)
}

// readBody reads the rest of a function.
func (f *function) readBody() error {
	if f.read {
		return nil
	}
	f.read, f.defaults = true, map[string]*attribute{}
	err := fields(f.message, func(part field) error {
		switch part.number {
		case 4:
			f.inputs = append(f.inputs, string(part.bytes))
		case 5:
			f.outputs = append(f.outputs, string(part.bytes))
		case 7:
			n, err := readNode(part.bytes, 0)
			f.nodes = append(f.nodes, n)
			return err
		case 9:
			domain, version, err := readOpset(part.bytes)
			if standardDomain(domain) {
				f.opset = version
			}
			return err
		case 11:
			name, a, err := readAttribute(part.bytes)
			f.defaults[name] = a
			return err
		}
		return nil
	})
	return errors.WithMessagef(err, "function %s", f.name)
}

// Limits of what functions and branches add to a model. A small file could call a function twice
// that calls another twice, and so on.
const (
	maxInlinedNodes = 1 << 18
	maxInlinedBytes = 1 << 27
	perName         = 64  // bytes that a list of names takes for one
	maxCalls        = 100 // of functions by each other
)

// inliner replaces calls of functions by the functions' nodes, and gives values in branches names
// that the model does not have yet.
type inliner struct {
	model        *Model
	functions    map[functionName]*function
	calling      []*function
	taken        map[string]bool // names of values, once they are needed
	nodes, bytes int             // added
	copies       int             // of names, which are numbered
}

// inline replaces the calls of functions.
func (m *Model) inline(functions map[functionName]*function) (err error) {
	in := &inliner{model: m, functions: functions}
	m.nodes, err = in.expanded(nil, m.nodes, &scope{opset: m.Opset})
	return err
}

// scope has the names that nodes of a graph, of a branch or of a function use.
type scope struct {
	outer *scope            // around a branch
	names map[string]string // of values, in the model; nil for the model's graph
	// call is the node that calls the function, or nil for the model's graph and its branches.
	call     *node
	defaults map[string]*attribute // of the function
	opset    int
}

// name returns the name of a value in the model. It is an error if a function does not make it.
func (s *scope) name(local string) (string, error) {
	if local == "" {
		return "", nil
	}
	for at := s; at != nil; at = at.outer {
		if name, ok := at.names[local]; ok {
			return name, nil
		}
	}
	if s.call == nil {
		return local, nil
	}
	return "", errors.Errorf("the function has no input and no earlier value %q", local)
}

// expanded appends nodes to others, with names of the model, and replaces calls by the nodes of
// functions.
func (in *inliner) expanded(to, nodes []*node, s *scope) ([]*node, error) {
	for _, n := range nodes {
		n, err := in.scoped(n, s)
		if err != nil {
			return nil, errors.WithMessagef(err, "node %s", n)
		}
		f := in.calledBy(n)
		if f == nil {
			to = append(to, n)
			continue
		}
		if s.names == nil {
			in.model.calls = append(in.model.calls, n)
		}
		if to, err = in.called(to, f, n); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// calledBy returns the function that a node calls, or nil.
func (in *inliner) calledBy(n *node) *function {
	if standardDomain(n.domain) && operators[n.op] {
		return nil
	}
	return in.functions[nameOf(n.domain, n.op, n.overload)]
}

// called appends the nodes of a function that a node calls.
func (in *inliner) called(to []*node, f *function, call *node) ([]*node, error) {
	err := f.readBody()
	switch {
	case err != nil:
	case slices.Contains(in.calling, f):
		err = errors.Errorf("function %s must not call itself, directly or through others", f.name)
	case len(in.calling) >= maxCalls:
		err = errors.Errorf("at most %d functions may call each other", maxCalls)
	case len(call.inputs) > len(f.inputs) || len(call.outputs) > len(f.outputs):
		err = errors.Errorf("function %s has %d inputs and %d outputs, the call has %d and %d",
			f.name, len(f.inputs), len(f.outputs), len(call.inputs), len(call.outputs))
	default:
		err = in.add(0, perName*(len(f.inputs)+len(f.outputs)))
	}
	if err != nil {
		return nil, errors.WithMessagef(err, "node %s", call)
	}
	s := &scope{names: map[string]string{}, call: call, defaults: f.defaults, opset: f.opset}
	for i, formal := range f.inputs {
		s.names[formal] = ""
		if i < len(call.inputs) {
			s.names[formal] = call.inputs[i]
		}
	}
	in.calling = append(in.calling, f)
	to, err = in.body(to, f.nodes, s, f.outputs, call)
	in.calling = in.calling[:len(in.calling)-1]
	return to, err
}

// body appends the nodes of a function or of a branch. Values that it returns get the names of the
// outputs of a node, by copies if the nodes do not make them.
func (in *inliner) body(to, nodes []*node, s *scope, returned []string, as *node) ([]*node, error) {
	made := map[string]bool{}
	for _, n := range nodes {
		for _, name := range n.outputs {
			if made[name] {
				return nil, errors.Errorf("node %s: two of its nodes make the value %q", as, name)
			}
			made[name] = name != ""
		}
	}
	outputs := as.outputs[:min(len(as.outputs), len(returned))]
	copied := make([]bool, len(outputs))
	for i, name := range outputs {
		local := returned[i]
		_, known := s.names[local]
		if copied[i] = !made[local] || known; name != "" && !copied[i] {
			s.names[local] = name
		}
	}
	to, err := in.expanded(to, nodes, s)
	if err != nil {
		return nil, err
	}
	for i, name := range outputs {
		if name == "" || !copied[i] {
			continue
		}
		from, err := s.name(returned[i])
		if err == nil {
			err = in.add(1, 0)
		}
		if err != nil {
			return nil, errors.WithMessagef(err, "node %s: output %d", as, i)
		}
		to = append(to, &node{name: as.label(), op: "Identity", inputs: []string{from}, outputs: []string{name}, opset: s.opset})
	}
	return to, nil
}

// scoped returns a node with names of the model, and without references to attributes of the call.
func (in *inliner) scoped(n *node, s *scope) (*node, error) {
	var err error
	if s.names != nil {
		if n, err = in.copied(n, s); err != nil {
			return n, err
		}
	}
	n.opset = s.opset
	for name, a := range n.attributes {
		if a.refersTo != "" {
			return n, errors.Errorf("attribute %s refers to an attribute of a function, outside of one", name)
		}
	}
	if standardDomain(n.domain) && n.opset < minOpset && in.calledBy(n) == nil {
		return n, errors.Errorf("opset must be at least %d, got %d: convert the model by onnx.version_converter", minOpset, n.opset)
	}
	if n.branches != nil {
		n.branches, err = in.scopedBranches(n, s)
	}
	return n, err
}

// copied returns a copy of a node of a function or of a branch.
func (in *inliner) copied(n *node, s *scope) (*node, error) {
	c := *n
	if call := s.call; call != nil {
		c.name = call.label() + "/" + n.name
		if n.name == "" {
			c.name += n.op
		}
	}
	err := in.add(1, len(c.name)+perName*(len(n.inputs)+len(n.outputs)+len(n.attributes)))
	if err != nil {
		return &c, err
	}
	c.inputs, c.outputs = make([]string, len(n.inputs)), make([]string, len(n.outputs))
	for i, local := range n.inputs {
		if c.inputs[i], err = s.name(local); err != nil {
			return &c, err
		}
	}
	for i, local := range n.outputs {
		if c.outputs[i], err = in.defined(local, s); err != nil {
			return &c, err
		}
	}
	if s.call != nil {
		c.attributes, err = s.withValues(n.attributes)
	}
	return &c, err
}

// withValues returns attributes in which references are replaced by attributes of the call, or by
// their defaults. An attribute that has neither is left out.
func (s *scope) withValues(attributes map[string]*attribute) (map[string]*attribute, error) {
	refers := false
	for _, a := range attributes {
		refers = refers || a.refersTo != ""
	}
	if !refers {
		return attributes, nil
	}
	all := map[string]*attribute{}
	for name, a := range attributes {
		if a.refersTo == "" {
			all[name] = a
			continue
		}
		given := s.call.attributes[a.refersTo]
		if given == nil {
			given = s.defaults[a.refersTo]
		}
		if given == nil {
			continue
		}
		if a.kind != 0 && given.kind != 0 && a.kind != given.kind {
			return nil, errors.Errorf("attribute %s must have type %d, as in the function, got %d", name, a.kind, given.kind)
		}
		all[name] = given
	}
	return all, nil
}

// defined returns the name in the model of a value that a node makes.
func (in *inliner) defined(local string, s *scope) (string, error) {
	if local == "" {
		return "", nil
	}
	if name, ok := s.names[local]; ok {
		return name, nil
	}
	name := local
	if s.call != nil {
		name = s.call.label() + "/" + local
	}
	name = in.free(name)
	s.names[local] = name
	return name, in.add(0, perName+len(name))
}

// free returns a name that no value of the model has, and takes it.
func (in *inliner) free(name string) string {
	if in.taken == nil {
		in.taken = map[string]bool{}
		for _, v := range in.model.Inputs {
			in.taken[v.Name] = true
		}
		for tensor := range in.model.tensors {
			in.taken[tensor] = true
		}
		for _, n := range in.model.nodes {
			for _, output := range n.outputs {
				in.taken[output] = true
			}
		}
	}
	wanted := name
	for in.taken[name] {
		in.copies++
		name = fmt.Sprintf("%s#%d", wanted, in.copies)
	}
	in.taken[name] = true
	return name
}

// add counts nodes and bytes that are added to the model.
func (in *inliner) add(nodes, bytes int) error {
	in.nodes += nodes
	in.bytes += bytes
	if in.nodes > maxInlinedNodes || in.bytes > maxInlinedBytes {
		return errors.Errorf("functions and branches must have at most %d nodes and %d MiB once they are inlined", maxInlinedNodes, maxInlinedBytes>>20)
	}
	return nil
}

// scopedBranches returns the branches of a node that has names of the model. Their nodes make the
// outputs of the node.
func (in *inliner) scopedBranches(n *node, s *scope) (*branches, error) {
	both := &branches{}
	read := map[string]bool{}
	for _, of := range []struct{ from, to *branch }{{&n.branches.then, &both.then}, {&n.branches.otherwise, &both.otherwise}} {
		within := &scope{outer: s, names: map[string]string{}, call: s.call, defaults: s.defaults, opset: s.opset}
		var err error
		if of.to.nodes, err = in.body(nil, of.from.nodes, within, of.from.outputs, n); err != nil {
			return nil, err
		}
		made := map[string]bool{}
		for _, inner := range of.to.nodes {
			for _, name := range inner.reads() {
				if !made[name] && name != "" && !read[name] {
					read[name] = true
					both.reads = append(both.reads, name)
				}
			}
			for _, name := range inner.outputs {
				made[name] = true
			}
		}
	}
	return both, in.add(0, perName*len(both.reads))
}
